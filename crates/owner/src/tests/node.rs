//! A node service that grants leases and places actors. Its mail comes late.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use oxiray_ids::ActorId;

/// What it says to processes.
pub(super) enum Mail {
    Granted {
        shape: u32,
        lease: u64,
        worker: u32,
    },
    Reclaim,
    Died(u32),
    Alive(ActorId, u32),
    /// With the process it was at.
    Dead(ActorId, Option<u32>),
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
    creator: Option<u32>,
    process: Option<u32>,
    watchers: BTreeSet<u32>,
}

#[derive(Default)]
pub(super) struct Node {
    /// Of each process and shape: leases requested and granted.
    pub(super) demand: BTreeMap<(u32, u32), (u64, u64)>,
    pub(super) idle: Vec<u32>,
    /// Owner and worker.
    pub(super) leases: BTreeMap<u64, (u32, u32)>,
    next_lease: u64,
    pub(super) mail: BTreeMap<u32, VecDeque<Mail>>,
    actors: BTreeMap<ActorId, Actor>,
    pub(super) to_kill: Vec<u32>,
    pub(super) to_start: Vec<(ActorId, u32, Vec<u8>)>,
}

impl Node {
    fn post(&mut self, to: u32, mail: Mail) {
        self.mail.entry(to).or_default().push_back(mail);
    }

    /// Grants a lease, if somebody wants one and there is a worker: to the `turn`th.
    pub(super) fn grant(&mut self, turn: usize) -> bool {
        let wanting: Vec<(u32, u32)> = self
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

    pub(super) fn reclaim(&mut self, from: u32) {
        self.post(from, Mail::Reclaim);
    }

    fn actor(&mut self, id: ActorId) -> &mut Actor {
        self.actors.entry(id).or_insert_with(|| Actor {
            phase: Phase::Unknown,
            creator: None,
            process: None,
            watchers: BTreeSet::new(),
        })
    }

    pub(super) fn create(&mut self, id: ActorId, creator: u32, constructor: Vec<u8>) {
        let actor = self.actor(id);
        assert!(actor.phase == Phase::Unknown, "an actor is made once");
        actor.phase = Phase::Pending;
        actor.creator = Some(creator);
        actor.watchers.insert(creator);
        self.to_start.push((id, creator, constructor));
    }

    pub(super) fn placed(&mut self, id: ActorId, process: u32) {
        self.actor(id).process = Some(process);
    }

    pub(super) fn watch(&mut self, id: ActorId, watcher: u32) {
        let actor = self.actor(id);
        actor.watchers.insert(watcher);
        let (phase, process) = (actor.phase, actor.process);
        match phase {
            Phase::Alive => self.post(watcher, Mail::Alive(id, process.expect("alive"))),
            Phase::Dead => self.post(watcher, Mail::Dead(id, process)),
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
        for watcher in actor.watchers.clone() {
            self.post(watcher, Mail::Alive(id, process));
        }
    }

    /// One that it does not know it does not remember either.
    pub(super) fn kill(&mut self, id: ActorId) {
        let actor = self.actor(id);
        match (actor.phase, actor.process) {
            (Phase::Pending | Phase::Alive, Some(process)) => self.to_kill.push(process),
            (Phase::Pending, None) => {
                self.to_start.retain(|(other, ..)| *other != id);
                self.end(id);
            }
            _ => {}
        }
    }

    fn end(&mut self, id: ActorId) {
        let actor = self.actor(id);
        if actor.phase == Phase::Dead {
            return;
        }
        actor.phase = Phase::Dead;
        let process = actor.process;
        for watcher in std::mem::take(&mut actor.watchers) {
            self.post(watcher, Mail::Dead(id, process));
        }
    }

    /// A process is gone; `others` are told.
    pub(super) fn bury(&mut self, dead: u32, others: impl Iterator<Item = u32>) {
        let here = |actor: &Actor| actor.process == Some(dead) && actor.phase != Phase::Dead;
        let ended: Vec<ActorId> =
            self.actors.iter().filter(|(_, actor)| here(actor)).map(|(id, _)| *id).collect();
        // Which of the two is heard first must not matter.
        if dead % 2 == 0 {
            ended.iter().for_each(|id| self.end(*id));
        }
        others.for_each(|other| self.post(other, Mail::Died(dead)));
        ended.iter().for_each(|id| self.end(*id));
        let orphans: Vec<ActorId> = self
            .actors
            .iter()
            .filter(|(_, actor)| actor.creator == Some(dead))
            .map(|(id, _)| *id)
            .collect();
        orphans.into_iter().for_each(|id| self.kill(id));
        self.idle.retain(|worker| *worker != dead);
        self.demand.retain(|(owner, _), _| *owner != dead);
        self.mail.remove(&dead);
        let ended =
            self.leases.extract_if(.., |_, (owner, worker)| *owner == dead || *worker == dead);
        let freed: Vec<u32> = ended.map(|(_, (_, worker))| worker).filter(|w| *w != dead).collect();
        self.idle.extend(freed);
        self.actors.values_mut().for_each(|actor| actor.watchers.retain(|watcher| *watcher != dead));
    }
}
