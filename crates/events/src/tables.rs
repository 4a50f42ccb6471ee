//! The tables of a history: tasks by id, their attempts, what they need, and processes.

use std::hash::BuildHasher;

use hashbrown::hash_table::Entry as Slot;
use oxiray_ids::{ActorId, ProcessId, TaskId};

use crate::format::Role;
use crate::history::{Edge, History, NONE, Process, UNNAMED};
use crate::task::{Entry, Tried};

impl History {
    pub(crate) fn know(&mut self, task: u32) {
        let entry = &mut self.entries[task as usize];
        self.known += usize::from(!entry.known);
        entry.known = true;
    }

    /// The attempt of a task, made if there is none yet. Attempts that follow each other come
    /// from several files in any order.
    pub(crate) fn tried(&mut self, task: u32, number: u16) -> &mut Tried {
        let Self { entries, earlier, .. } = self;
        let Entry { newest, earlier: first, .. } = &mut entries[task as usize];
        if newest.number == number {
            return newest;
        }
        let fresh = Tried { number, ..Tried::default() };
        if newest.number < number {
            earlier.push((std::mem::replace(newest, fresh), *first));
            *first = earlier.len() as u32 - 1;
            return newest;
        }
        let (mut before, mut next) = (NONE, *first);
        while let Some((tried, after)) = earlier.get(next as usize)
            && tried.number > number
        {
            (before, next) = (next, *after);
        }
        if earlier.get(next as usize).is_none_or(|(tried, _)| tried.number != number) {
            earlier.push((fresh, next));
            next = earlier.len() as u32 - 1;
            match earlier.get_mut(before as usize) {
                Some((_, after)) => *after = next,
                None => *first = next,
            }
        }
        &mut earlier[next as usize].0
    }

    pub(crate) fn connect(&mut self, task: u32, need: u32) {
        let edge = self.edges.len() as u32;
        let next_need = std::mem::replace(&mut self.entries[task as usize].needs, edge);
        let next_feed = std::mem::replace(&mut self.entries[need as usize].feeds, edge);
        self.edges.push(Edge { task, need, next_need, next_feed });
    }

    pub(crate) fn entry(&mut self, id: TaskId) -> u32 {
        let home = self.home(id.actor());
        self.find_or_insert(home, id.unique())
    }

    pub(crate) fn home(&mut self, actor: ActorId) -> u32 {
        let homes = &mut self.homes;
        *self.home_index.entry(actor).or_insert_with(|| {
            homes.push(actor);
            homes.len() as u32 - 1
        })
    }

    /// The place of a process that others send to.
    pub(crate) fn peer(&mut self, id: ProcessId) -> u32 {
        let processes = &mut self.processes;
        *self.process_index.entry(id).or_insert_with(|| {
            processes.push(Process::new(id, id.node(), 0, Role::Worker));
            processes.len() as u32 - 1
        })
    }

    pub(crate) fn find_or_insert(&mut self, home: u32, unique: u64) -> u32 {
        let Self { entries, index, hasher, .. } = self;
        let hash = |entry: &Entry| hasher.hash_one((entry.home, entry.unique));
        let same = |index: &u32| {
            let entry = &entries[*index as usize];
            entry.unique == unique && entry.home == home
        };
        let rehash = |index: &u32| hash(&entries[*index as usize]);
        match index.entry(hasher.hash_one((home, unique)), same, rehash) {
            Slot::Occupied(found) => *found.get(),
            Slot::Vacant(place) => {
                let new = entries.len() as u32;
                place.insert(new);
                if entries.len() == entries.capacity() {
                    // A quarter more: twice would be a hundred megabytes for nothing.
                    entries.reserve_exact((entries.len() / 4).max(64));
                }
                entries.push(Entry {
                    unique,
                    submitted: 0,
                    home,
                    name: UNNAMED,
                    function: UNNAMED,
                    parent: NONE,
                    owner: NONE,
                    needs: NONE,
                    feeds: NONE,
                    earlier: NONE,
                    kind: None,
                    known: false,
                    newest: Tried::default(),
                });
                new
            }
        }
    }
}
