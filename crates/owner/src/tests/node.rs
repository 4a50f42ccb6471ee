//! A node service that grants leases and places actors. Its mail comes late.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use oxiray_ids::ActorId;

/// What it says to processes.
pub(super) enum Mail {
    Granted {
        shape: u32,
        lease: u64,
        worker: u64,
    },
    Reclaim,
    Died(u64),
    NodeLost(u32),
    /// With its process, and which incarnation that is.
    Alive(ActorId, u64, u64),
    /// With the process it was at, and the incarnation that is to come.
    Restarting(ActorId, u64, u64),
    /// With the process it was at, and the last incarnation.
    Dead(ActorId, Option<u64>, u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Unknown,
    Pending,
    Alive,
    Dead,
}

struct Actor {
    phase: Phase,
    /// Where it was and is, one after the other: their places are the incarnations.
    lives: Vec<u64>,
    incarnation: u64,
    process: Option<u64>,
    watchers: BTreeSet<u64>,
}

#[derive(Default)]
pub(super) struct Node {
    /// Of each process and shape: leases requested and granted.
    pub(super) demand: BTreeMap<(u64, u32), (u64, u64)>,
    pub(super) idle: Vec<u64>,
    /// Owner and worker.
    pub(super) leases: BTreeMap<u64, (u64, u64)>,
    /// Leases that ended with their worker, which the owner may not know yet.
    ended: BTreeSet<u64>,
    next_lease: u64,
    pub(super) mail: BTreeMap<u64, VecDeque<Mail>>,
    dead: BTreeSet<u64>,
    /// Who was told of which death.
    told: BTreeSet<(u64, u64)>,
    actors: BTreeMap<ActorId, Actor>,
    /// How often an actor may be started again, and its constructor.
    pub(super) restarts: BTreeMap<ActorId, i32>,
    constructors: BTreeMap<ActorId, Vec<u8>>,
    pub(super) to_kill: Vec<u64>,
    pub(super) to_start: Vec<(ActorId, u64, Vec<u8>)>,
}

impl Node {
    fn post(&mut self, to: u64, mail: Mail) {
        self.mail.entry(to).or_default().push_back(mail);
    }

    /// Grants a lease, if somebody wants one and there is a worker: to the `turn`th.
    pub(super) fn grant(&mut self, turn: usize) -> bool {
        let wanting: Vec<(u64, u32)> = self
            .demand
            .iter()
            .filter(|(_, (requested, granted))| requested > granted)
            .map(|(who, _)| *who)
            .collect();
        if wanting.is_empty() {
            return false;
        }
        let (owner, shape) = wanting[turn % wanting.len()];
        // A process does not get itself to work for it.
        let Some(at) = self.idle.iter().position(|worker| *worker != owner) else {
            return false;
        };
        let worker = self.idle.remove(at);
        self.demand.get_mut(&(owner, shape)).expect("wanting").1 += 1;
        self.next_lease += 1;
        let lease = self.next_lease;
        self.leases.insert(lease, (owner, worker));
        self.post(owner, Mail::Granted { shape, lease, worker });
        true
    }

    pub(super) fn returned(&mut self, lease: u64, by: u64) {
        match self.leases.remove(&lease) {
            Some((owner, worker)) => {
                assert_eq!(owner, by);
                self.idle.push(worker);
            }
            None => assert!(self.ended.remove(&lease), "a lease is returned once"),
        }
    }

    pub(super) fn reclaim(&mut self, from: u64) {
        self.post(from, Mail::Reclaim);
    }

    fn actor(&mut self, id: ActorId) -> &mut Actor {
        self.actors.entry(id).or_insert_with(|| Actor {
            phase: Phase::Unknown,
            lives: Vec::new(),
            incarnation: 0,
            process: None,
            watchers: BTreeSet::new(),
        })
    }

    pub(super) fn create(&mut self, id: ActorId, creator: u64, constructor: Vec<u8>) {
        let actor = self.actor(id);
        assert!(actor.phase == Phase::Unknown, "an actor is made once");
        actor.phase = Phase::Pending;
        actor.watchers.insert(creator);
        self.constructors.insert(id, constructor.clone());
        self.to_start.push((id, creator, constructor));
    }

    /// Starts an actor again, if it may be.
    fn restart(&mut self, id: ActorId, dead: u64) -> bool {
        let (creator, left) = (creator_of(id), self.restarts.get(&id).copied().unwrap_or(0));
        if left == 0 || self.dead.contains(&creator) {
            return false;
        }
        self.restarts.insert(id, left - 1);
        let actor = self.actor(id);
        (actor.phase, actor.process) = (Phase::Pending, None);
        actor.incarnation += 1;
        let incarnation = actor.incarnation;
        // Some hear of it late, when the next one lives: see `constructed`.
        for watcher in actor.watchers.clone().into_iter().filter(|who| !is_late(*who, dead)) {
            self.post(watcher, Mail::Restarting(id, dead, incarnation));
        }
        let constructor = self.constructors[&id].clone();
        self.to_start.push((id, creator, constructor));
        true
    }

    pub(super) fn placed(&mut self, id: ActorId, process: u64) {
        let actor = self.actor(id);
        actor.process = Some(process);
        actor.lives.resize(actor.incarnation as usize, u64::MAX);
        actor.lives.push(process);
    }

    /// Which incarnation of an actor a process is.
    pub(super) fn incarnation_at(&self, id: ActorId, process: u64) -> u64 {
        let lives = &self.actors[&id].lives;
        lives.iter().position(|at| *at == process).expect("was placed there") as u64
    }

    pub(super) fn watch(&mut self, id: ActorId, watcher: u64) {
        let never = self.dead.contains(&creator_of(id));
        let actor = self.actor(id);
        actor.watchers.insert(watcher);
        if never && actor.phase == Phase::Unknown {
            return self.end(id);
        }
        let (phase, process, incarnation) = (actor.phase, actor.process, actor.incarnation);
        match phase {
            Phase::Alive => {
                self.post(watcher, Mail::Alive(id, process.expect("alive"), incarnation));
            }
            Phase::Dead => self.post(watcher, Mail::Dead(id, process, incarnation)),
            Phase::Unknown | Phase::Pending => {}
        }
    }

    /// Its constructor ended.
    pub(super) fn constructed(&mut self, id: ActorId, well: bool) {
        let actor = self.actor(id);
        let process = actor.process.expect("placed");
        if !well {
            return self.to_kill.push(process);
        }
        actor.phase = Phase::Alive;
        let (incarnation, lives) = (actor.incarnation, actor.lives.clone());
        let before = lives.iter().rev().nth(1).copied().filter(|_| incarnation > 0);
        for watcher in actor.watchers.clone() {
            self.post(watcher, Mail::Alive(id, process, incarnation));
            // What others know of the last one's end comes by another way.
            if let Some(dead) = before.filter(|dead| is_late(watcher, *dead)) {
                self.post(watcher, Mail::Alive(id, dead, incarnation - 1));
                self.post(watcher, Mail::Restarting(id, dead, incarnation));
                self.post(watcher, Mail::Dead(id, Some(dead), incarnation - 1));
                self.post(watcher, Mail::Alive(id, process, incarnation));
            }
        }
    }

    /// One that it does not know yet never begins.
    pub(super) fn kill(&mut self, id: ActorId) {
        let actor = self.actor(id);
        match (actor.phase, actor.process) {
            (Phase::Pending | Phase::Alive, Some(process)) => self.to_kill.push(process),
            (Phase::Pending, None) => {
                self.to_start.retain(|(other, ..)| *other != id);
                self.end(id);
            }
            (Phase::Unknown, _) => self.end(id),
            _ => {}
        }
    }

    fn end(&mut self, id: ActorId) {
        let actor = self.actor(id);
        if actor.phase == Phase::Dead {
            return;
        }
        actor.phase = Phase::Dead;
        let (process, incarnation) = (actor.process, actor.incarnation);
        for watcher in std::mem::take(&mut actor.watchers) {
            self.post(watcher, Mail::Dead(id, process, incarnation));
        }
    }

    /// Also said to one that was not there then, when it wants to talk to the dead.
    pub(super) fn tell_of_death(&mut self, to: u64, dead: u64) {
        if self.told.insert((to, dead)) {
            self.post(to, Mail::Died(dead));
        }
    }

    pub(super) fn tell_of_lost_node(&mut self, node: u32, to: impl Iterator<Item = u64>) {
        to.for_each(|process| self.post(process, Mail::NodeLost(node)));
    }

    /// A process is gone, or went as it was `meant` to; `others` are told.
    pub(super) fn bury(&mut self, dead: u64, meant: bool, others: impl Iterator<Item = u64>) {
        self.dead.insert(dead);
        let here = |actor: &Actor| actor.process == Some(dead) && actor.phase != Phase::Dead;
        let ended: Vec<ActorId> =
            self.actors.iter().filter(|(_, actor)| here(actor)).map(|(id, _)| *id).collect();
        // Which of the two is heard first must not matter.
        if dead.is_multiple_of(2) && meant {
            ended.iter().for_each(|id| self.end(*id));
        }
        others.for_each(|other| self.tell_of_death(other, dead));
        for id in ended {
            if meant || !self.restart(id, dead) {
                self.end(id);
            }
        }
        let orphans: Vec<ActorId> =
            self.actors.keys().copied().filter(|id| creator_of(*id) == dead).collect();
        orphans.into_iter().for_each(|id| self.kill(id));
        self.idle.retain(|worker| *worker != dead);
        self.demand.retain(|(owner, _), _| *owner != dead);
        self.mail.remove(&dead);
        let over = |_: &u64, lease: &mut (u64, u64)| lease.0 == dead || lease.1 == dead;
        for (lease, (_, worker)) in self.leases.extract_if(.., over) {
            if worker == dead {
                self.ended.insert(lease);
            } else {
                self.idle.push(worker);
            }
        }
        self.actors
            .values_mut()
            .for_each(|actor| actor.watchers.retain(|watcher| *watcher != dead));
    }
}

/// Whether a watcher hears late that an actor's process died.
fn is_late(watcher: u64, dead: u64) -> bool {
    (watcher + dead).is_multiple_of(2)
}

/// The process that makes an actor is part of its id.
fn creator_of(id: ActorId) -> u64 {
    id.creator().0
}
