//! Letting a world come to rest, and what must hold then.

use oxiray_ids::{ActorId, ProcessId};

use super::world::World;
use crate::actors::Actor;
use crate::control::Control;

impl World {
    /// Everything is delivered, everybody who can comes back, time passes.
    pub(super) fn settle(&mut self) {
        self.crash = None;
        self.start_control();
        for node in &mut self.nodes {
            node.frozen = false;
        }
        // Longer than a member that is gone may say nothing.
        for _ in 0..60 {
            (0..self.nodes.len()).for_each(|index| self.connect(index));
            self.drain();
            self.advance(500_000_000);
        }
        self.drain();
        let hosted = self.nodes.iter().enumerate().flat_map(|(index, node)| {
            node.hosted.iter().filter(|(_, one)| !one.alive).map(move |(id, _)| (index, *id))
        });
        for (index, id) in hosted.collect::<Vec<_>>() {
            self.nodes[index].progress(id, true);
        }
        self.drain();
    }

    fn drain(&mut self) {
        let mut moved = true;
        while std::mem::take(&mut moved) {
            let mut index = 0;
            while index < self.nodes.len() {
                let before = self.nodes.len();
                let any = self.deliver_down(index)
                    || self.deliver_up(index)
                    || self.deliver_across(index);
                moved |= any;
                if !any && self.nodes.len() == before {
                    index += 1;
                }
            }
        }
    }

    pub(super) fn check_rest(&self) {
        let control = self.control.as_ref().expect("was started");
        let numbers: Vec<u32> = self.nodes.iter().map(|node| node.number).collect();
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        let members: Vec<u32> = control.members.keys().copied().collect();
        assert_eq!(members, sorted, "members are those that are there");
        self.check_actors_at_rest(control);
        self.check_watches_at_rest(control);
        for (name, bearer) in control.names.iter() {
            let made = control.actors.contains_key(&bearer.actor);
            let creator = self.nodes.iter().any(|node| node.processes.contains(&bearer.creator));
            assert!(made || creator, "{name:?} is nobody's");
        }
        for job in control.jobs.values().filter(|job| job.ended_ms == 0) {
            let runs = self.nodes.iter().any(|node| node.jobs.contains_key(&job.id));
            assert!(runs, "{job:?} does not run");
        }
    }

    fn check_actors_at_rest(&self, control: &Control) {
        for node in &self.nodes {
            for (id, hosted) in &node.hosted {
                let record = control.actors.get(id).map(|actor| &actor.record);
                let record = record.unwrap_or_else(|| panic!("C-1: {id} is not recorded"));
                assert_eq!(record.node, node.number, "C-1: {id}");
                assert_eq!(record.restarts, hosted.restarts, "{id}");
                assert_eq!(record.stay, hosted.stay, "C-10: {id}");
                assert!(record.was_alive, "{id}");
                assert_eq!(record.killed, None, "{id} was to end");
            }
        }
        for (id, actor) in &control.actors {
            let node = self.nodes.iter().find(|node| node.number == actor.record.node);
            let there = node.is_some_and(|node| node.hosted.contains_key(id));
            assert!(there || actor.record.node == 0, "C-1: {id} is not where it should be");
            if actor.record.node == 0 {
                let creator = actor.record.creator();
                let lives = self.nodes.iter().any(|node| node.processes.contains(&creator));
                assert!(lives, "C-8: {id}");
            }
        }
    }

    /// C-3.
    fn check_watches_at_rest(&self, control: &Control) {
        for node in &self.nodes {
            for (&(watcher, id), heard) in &node.watching {
                assert!(self.is_watching(control, watcher, id), "C-3: {watcher} {id} is forgotten");
                if let Some(Actor { record, .. }) = control.actors.get(&id) {
                    let newest = (record.stay, record.restarts);
                    assert!((heard.stay, heard.restarts) <= newest, "C-10: {watcher} {id}");
                }
            }
            for (id, _) in node.heard_dead.iter().filter(|(_, from)| node.is_member(**from)) {
                assert!(!control.actors.contains_key(id), "C-7: {id} is not dead");
            }
            assert!(node.asked.is_empty(), "a question was not answered");
        }
    }

    fn is_watching(&self, control: &Control, watcher: ProcessId, id: ActorId) -> bool {
        let Some(actor) = control.actors.get(&id) else {
            let expected = control.expected.get(&(id.creator(), id));
            return expected.is_some_and(|watchers| watchers.contains_key(&watcher));
        };
        if actor.record.node == 0 {
            return actor.watchers.contains_key(&watcher) || actor.record.creator() == watcher;
        }
        let host = self.nodes.iter().find(|node| node.number == actor.record.node);
        host.is_some_and(|host| host.hosted[&id].watchers.contains(&watcher))
    }
}
