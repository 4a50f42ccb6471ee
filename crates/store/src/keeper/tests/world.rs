//! A node in one thread: processes that use the store as a worker does, a disk,
//! and messages between them that wait until somebody delivers them.
//!
//! Bytes are not kept: the model notes which object was written where. So an
//! arena may be as large as slabs need it to be.
//!
//! - `using`: what processes do with objects
//! - `messages`: between processes, keeper and disk

mod messages;
mod using;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use oxiray_ids::{ProcessId, StoreKey};

use super::{Record, assert_empty, table};
use crate::carver::{Carver, SlabGrant};
use crate::keeper::{Keeper, Refusal};
use crate::table::{Extent, Table};

/// Whose bytes are where.
#[derive(Default)]
pub(super) struct Memory(BTreeMap<u64, (u64, StoreKey)>);

impl Memory {
    /// Overwrites whatever was there.
    fn write(&mut self, extent: Extent, key: StoreKey) {
        let end = extent.offset + extent.len.max(1);
        let over = self.0.range(..end).rev().take_while(|(at, (len, _))| *at + len > extent.offset);
        let over: Vec<u64> = over.map(|(at, _)| *at).collect();
        self.0.retain(|at, _| !over.contains(at));
        self.0.insert(extent.offset, (extent.len.max(1), key));
    }

    fn holds(&self, extent: Extent, key: StoreKey) -> bool {
        self.0.get(&extent.offset) == Some(&(extent.len.max(1), key))
    }
}

/// From a process to the keeper.
#[derive(Debug)]
enum Message {
    Allocate { request: u64, size: u64, owner: ProcessId },
    Withdraw(u64),
    Fetch(u64, StoreKey),
    Free(StoreKey),
    Unpinned(u32),
    Slab(u64),
    SlabReturned(u64),
    DeathSeen(ProcessId),
}

/// To a process.
#[derive(Debug)]
enum News {
    Allocated(u64, Result<(StoreKey, u64), Refusal>),
    Slab(u64, Option<SlabGrant>),
    Fetched(u64, Result<(), Refusal>),
    Trim,
    Died(ProcessId),
}

/// What a process asked for and was not answered yet.
enum Want {
    Allocate { size: u64, owner: ProcessId },
    Slab,
    Fetch(StoreKey),
}

struct Filling {
    key: StoreKey,
    extent: Extent,
    owner: ProcessId,
    in_slab: bool,
}

struct Pin {
    key: StoreKey,
    extent: Extent,
    count: usize,
}

struct Process {
    id: ProcessId,
    row: u32,
    carver: Carver,
    /// It runs no more; what it sent is still on its way.
    dead: bool,
    sent: VecDeque<Message>,
    inbox: VecDeque<News>,
    wants: HashMap<u64, Want>,
    withdrawn: HashMap<u64, Want>,
    next_request: u64,
    filling: Vec<Filling>,
    /// By slot, as the bits are.
    pins: BTreeMap<u32, Pin>,
    /// Processes whose death it is to confirm.
    to_confirm: Vec<ProcessId>,
}

/// An object that its owner has taken up.
struct Known {
    key: StoreKey,
    owner: ProcessId,
    freed: bool,
}

/// A result on its way to its owner.
struct Answer {
    key: StoreKey,
    owner: ProcessId,
    creator: ProcessId,
}

enum DiskJob {
    Spill(Vec<(StoreKey, Extent)>),
    Restore(StoreKey, Extent),
}

pub(super) struct World {
    table: Table,
    pub(super) keeper: Keeper,
    now: u64,
    memory: Memory,
    processes: Vec<Process>,
    next_process: u64,
    free_rows: Vec<u32>,
    next_row: u32,
    known: Vec<Known>,
    answers: Vec<Answer>,
    disk: HashSet<StoreKey>,
    jobs: Vec<DiskJob>,
    has_slabs: bool,
}

fn pick<T>(list: &[T], number: u32) -> Option<usize> {
    (!list.is_empty()).then(|| number as usize % list.len())
}

impl World {
    pub(super) fn new(size: u64, patience: u64) -> Self {
        let table = table();
        let keeper = Keeper::new(size, table.clone(), patience);
        let mut world = Self {
            table,
            keeper,
            now: 1,
            memory: Memory::default(),
            processes: Vec::new(),
            next_process: 1,
            free_rows: Vec::new(),
            next_row: 0,
            known: Vec::new(),
            answers: Vec::new(),
            disk: HashSet::new(),
            jobs: Vec::new(),
            has_slabs: size / 8 >= 1 << 20,
        };
        world.start();
        world.start();
        world
    }

    /// A new process; it may have the row of a dead one.
    pub(super) fn start(&mut self) {
        if self.processes.len() >= 5 {
            return;
        }
        let id = ProcessId(self.next_process);
        self.next_process += 1;
        let row = self.free_rows.pop().unwrap_or_else(|| {
            self.next_row += 1;
            self.next_row - 1
        });
        self.keeper.on_process(id, row);
        self.processes.push(Process {
            id,
            row,
            carver: Carver::new(self.table.clone(), id),
            dead: false,
            sent: VecDeque::new(),
            inbox: VecDeque::new(),
            wants: HashMap::new(),
            withdrawn: HashMap::new(),
            next_request: 0,
            filling: Vec::new(),
            pins: BTreeMap::new(),
            to_confirm: Vec::new(),
        });
    }

    fn living(&self, number: u32) -> Option<usize> {
        let living: Vec<usize> =
            (0..self.processes.len()).filter(|&at| !self.processes[at].dead).collect();
        pick(&living, number).map(|at| living[at])
    }

    fn is_alive(&self, id: ProcessId) -> bool {
        self.processes.iter().any(|process| process.id == id && !process.dead)
    }

    /// A process dies. Of what it sent, `arrives` messages still arrive, and as
    /// many answers to owners.
    pub(super) fn kill(&mut self, who: u32, arrives: u32) {
        let Some(at) = self.living(who) else { return };
        let process = &mut self.processes[at];
        process.dead = true;
        let count = process.sent.len();
        process.sent.truncate(arrives as usize % (count + 1));
        process.inbox.clear();
        let (creator, mut arrive) = (process.id, arrives % 4);
        self.answers.retain(|answer| {
            let lost = answer.creator == creator && arrive == 0;
            arrive -= u32::from(answer.creator == creator && !lost);
            !lost
        });
    }

    /// The node notices a death. `says`: for each owner in turn, whether it will
    /// confirm that it has read everything.
    pub(super) fn end(&mut self, who: u32, says: u32) {
        let dead: Vec<usize> =
            (0..self.processes.len()).filter(|&at| self.processes[at].dead).collect();
        let Some(at) = pick(&dead, who).map(|at| dead[at]) else { return };
        let id = self.processes[at].id;
        while self.deliver_from(at) {}
        let gone = self.processes.remove(at);
        let living = self.processes.iter().filter(|process| !process.dead);
        let will_say: HashSet<ProcessId> = living
            .map(|process| process.id)
            .filter(|owner| says >> (owner.0 % 32) & 1 == 1)
            .collect();
        let mut out = Record::default();
        self.keeper.on_ended(id, |owner| will_say.contains(&owner), self.now, &mut out);
        self.free_rows.push(gone.row);
        self.answers.retain(|answer| {
            answer.owner != id && (answer.creator != id || will_say.contains(&answer.owner))
        });
        for process in &mut self.processes {
            if !process.dead {
                process.inbox.push_back(News::Died(id));
            }
            if will_say.contains(&process.id) {
                process.to_confirm.push(id);
            }
        }
        self.carry_out(out);
    }

    /// An owner reads all that a dead process had sent it, and says so.
    pub(super) fn confirm(&mut self, who: u32) {
        let Some(at) = self.living(who) else { return };
        let Some(dead) = self.processes[at].to_confirm.pop() else { return };
        let owner = self.processes[at].id;
        while let Some(at) =
            self.answers.iter().position(|answer| (answer.owner, answer.creator) == (owner, dead))
        {
            self.read_answer(at as u32);
        }
        self.processes[at].sent.push_back(Message::DeathSeen(dead));
    }

    /// What must hold after every step.
    pub(super) fn validate(&self) {
        self.keeper.validate();
        for process in &self.processes {
            process.carver.validate();
            for Pin { key, extent, .. } in process.pins.values() {
                assert!(self.memory.holds(*extent, *key), "T-1: {key:?} at {extent:?}");
            }
            for Filling { key, extent, .. } in &process.filling {
                assert!(self.memory.holds(*extent, *key), "C-1, K-1: {key:?} at {extent:?}");
            }
        }
    }

    /// Everybody lets go of everything, or everybody dies: nothing is left, and
    /// nobody is without an answer.
    pub(super) fn finish(mut self, by_death: bool, says: u32) {
        while by_death && self.living(0).is_some() {
            self.kill(says, says);
        }
        for _ in 0..300 {
            self.settle(says);
            self.validate();
            let waits = self.processes.iter().any(|process| {
                !process.wants.is_empty() || !process.inbox.is_empty() || !process.sent.is_empty()
            });
            if !waits && self.jobs.is_empty() && self.keeper.arena.used() == 0 {
                break;
            }
        }
        for process in &self.processes {
            let wants = process.wants.keys().collect::<Vec<_>>();
            assert!(wants.is_empty(), "K-4: {:?} waits for {wants:?}", process.id);
        }
        assert!(self.jobs.is_empty() && self.disk.is_empty());
        assert_empty(&self.keeper);
    }

    fn settle(&mut self, says: u32) {
        while self.processes.iter().any(|process| process.dead) {
            self.end(0, says);
        }
        for at in 0..self.processes.len() {
            let who = at as u32;
            while !self.processes[at].to_confirm.is_empty() {
                self.confirm(who);
            }
            while !self.processes[at].pins.is_empty() {
                self.look_away(who, 0);
            }
            while !self.processes[at].filling.is_empty() {
                self.seal(who, 0);
            }
            while !self.answers.is_empty() {
                self.read_answer(0);
            }
            (0..self.known.len() as u32).for_each(|which| self.free(which));
            while self.hear_at(at) {}
            self.processes[at].trim();
            while self.deliver_from(at) {}
        }
        while !self.jobs.is_empty() {
            self.disk(0, 0);
        }
        self.tick(super::SECOND);
    }
}

impl Process {
    fn want(&mut self, want: Want) -> u64 {
        self.next_request += 1;
        self.wants.insert(self.next_request, want);
        self.next_request
    }

    /// What the answer is to, and whether it was withdrawn meanwhile. Panics at a second answer.
    fn answered(&mut self, request: u64) -> (Want, bool) {
        match self.wants.remove(&request) {
            Some(want) => (want, false),
            None => (self.withdrawn.remove(&request).expect("asked, and not answered yet"), true),
        }
    }

    /// An object was doomed while it was filled here.
    fn over(&mut self, slot: u32, in_slab: bool) {
        if in_slab {
            self.carver.look_after(slot);
        } else {
            self.sent.push_back(Message::Unpinned(slot));
        }
    }

    fn trim(&mut self) {
        let offsets = self.carver.trim();
        self.sent.extend(offsets.into_iter().map(Message::SlabReturned));
    }
}
