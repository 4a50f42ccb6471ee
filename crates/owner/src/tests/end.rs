//! Letting a world come to rest, and what must hold then.

use super::work::Ending;
use super::world::World;

/// More rounds than any of these worlds needs.
const MANY: usize = 400;

impl World {
    /// Delivers everything that is on its way, again and again.
    pub(super) fn deliver_all(&mut self) {
        loop {
            let full = self.net.channels.iter().filter(|(_, frames)| !frames.is_empty());
            let mut channels: Vec<(u64, u64)> = full.map(|(ends, _)| *ends).collect();
            if channels.iter().any(|ends| !self.is_slow(*ends)) {
                channels.retain(|ends| !self.is_slow(*ends));
            } else {
                channels.truncate(1);
            }
            let mail: Vec<u64> =
                self.net.node.mail.iter().filter(|(_, m)| !m.is_empty()).map(|(k, _)| *k).collect();
            if channels.is_empty() && mail.is_empty() {
                return;
            }
            channels.into_iter().for_each(|(from, to)| self.drain_if_alive(from, to));
            for process in mail {
                if self.processes.contains_key(&process) {
                    self.read_mail(process);
                } else {
                    self.net.node.mail.remove(&process);
                }
            }
        }
    }

    fn drain_if_alive(&mut self, from: u64, to: u64) {
        match self.processes.contains_key(&to) {
            true => self.drain(from, to),
            false => drop(self.net.channels.remove(&(from, to))),
        }
    }

    pub(super) fn tick(&mut self, ns: u64) {
        self.now += ns;
        for process in self.processes.keys().copied().collect::<Vec<_>>() {
            self.with(process, |process, out| process.owner.on_tick(out));
        }
    }

    /// Runs every task to its end.
    pub(super) fn run_all(&mut self) {
        for _ in 0..MANY {
            self.deliver_all();
            while self.net.node.grant(0) {}
            for process in self.processes.keys().copied().collect::<Vec<_>>() {
                if self.processes.contains_key(&process) {
                    self.answer(process, &Ending { stored: self.stores, ..Ending::done() });
                }
                if self.processes.contains_key(&process) {
                    self.begin_next(process);
                }
                self.read_all(process);
            }
            self.tick(30_000_000);
            if self.is_at_rest() {
                return;
            }
        }
        let why = self.processes.iter().map(|(n, p)| (n, p.owner.reasons(9, |_, _| true)));
        let left: Vec<_> = why.filter(|(_, reasons)| !reasons.is_empty()).collect();
        panic!("O-1: tasks left, by process: {left:?}");
    }

    fn is_at_rest(&self) -> bool {
        self.net.channels.values().all(|channel| channel.is_empty())
            && self.net.node.mail.values().all(|mail| mail.is_empty())
            && self.processes.values().all(|process| {
                process.running.is_none()
                    && process.queue.is_empty()
                    && process.owner.counts().1 == process.owner.kept_constructors()
                    && !process.owner.has_leases()
                    && process.readers.is_empty()
                    && !process.unreferenced
            })
    }

    /// Ends the world and checks what must hold when nothing is under way and
    /// no program holds anything.
    pub(super) fn end(mut self) {
        self.run_all();
        for (number, process) in &self.processes {
            assert!(process.watched.is_empty(), "O-1: {number} waits for ever");
            assert!(process.readers.is_empty(), "Y-4: {number} reads for ever");
            assert!(process.entrusting.is_empty(), "{number} waits for an owner for ever");
        }
        for process in self.processes.keys().copied().collect::<Vec<_>>() {
            while self.processes.get(&process).is_some_and(|process| !process.refs.is_empty()) {
                self.drop_ref(process, 0);
            }
        }
        self.run_all();
        for (number, process) in &self.processes {
            let owner = &process.owner;
            let left: Vec<_> = owner.objects.iter().map(|(_, object)| object.id).collect();
            assert_eq!(owner.counts(), (0, 0), "O-3: left in process {number}: {left:?}");
            assert!(owner.by_id.is_empty());
            assert_eq!(owner.recipes(), 0, "L-1");
            assert!(owner.streams.is_empty(), "Y-3");
            assert!(owner.held_for_args.is_empty() && owner.handed_over.is_empty(), "O-3");
            assert!(owner.settling_args.is_empty() && owner.settling_returns.is_empty(), "O-3");
            assert!(owner.actors.is_empty(), "actors that nobody refers to are forgotten");
            assert!(process.actor.is_none(), "an actor without handles ends");
        }
        assert!(self.net.node.leases.is_empty(), "O-4: leases go back");
        if self.net.dead.is_empty() {
            assert!(self.net.extents.values().all(|freed| *freed), "O-3: extents are given back");
        }
    }
}
