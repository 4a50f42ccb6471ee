//! Processes of other nodes in our books, and ours in theirs.
//!
//! - **F-1** A node hears of a foreign process before anything else about it.
//! - **F-2** A node that knows one of our processes hears of its end.
//! - **F-3** A node introduces its own processes alone, and tells of their ends alone: one of a node that
//!   is no member would be in our books for ever.

use oxiray_ids::{JobId, ProcessId};
use oxiray_wire::cluster::{Introduce, between_nodes};
use oxiray_wire::control::{ProcessDied, ProcessKind};

use super::tell;
use crate::event::Outbox;
use crate::node::Node;
use crate::process::{Farewell, Process};

impl Node {
    /// Whether a process is of another node.
    pub(crate) fn is_elsewhere(&self, process: ProcessId) -> bool {
        process.node() != self.number
    }

    /// The job of a process of another node, known here from now on.
    pub(crate) fn learn_job(&mut self, about: &Introduce) -> Option<JobId> {
        let job = JobId::from_slice(&about.job)?;
        if let Some(config) = &about.config {
            self.jobs.entry(job).or_insert_with(|| config.clone());
        }
        Some(job)
    }

    /// A process of another node is in our books from now on.
    pub(crate) fn admit_foreign(&mut self, about: &Introduce) {
        let id = ProcessId(about.process);
        let job = self.learn_job(about);
        if !self.is_elsewhere(id) {
            return;
        }
        match self.processes.get_mut(&id) {
            Some(process) => {
                process.pid = about.pid;
                process.job = process.job.or(job);
            }
            None => {
                let gateway = Some(self.member.gateway);
                let process = Process::new(about.pid, ProcessKind::Foreign, gateway, job);
                self.processes.insert(id, process);
                self.keeper.on_foreign(id);
            }
        }
    }

    /// What other nodes must know of a process of ours.
    pub(crate) fn about(&self, id: ProcessId) -> Introduce {
        let process = self.processes.get(&id);
        let job = process.and_then(|process| process.job);
        Introduce {
            process: id.0,
            pid: process.map_or(0, |process| process.pid),
            job: job.map(|job| job.0.to_vec()).unwrap_or_default(),
            config: job.and_then(|job| self.jobs.get(&job).cloned()),
        }
    }

    /// Makes one of our processes known to a node (F-1).
    pub(crate) fn introduce(&mut self, id: ProcessId, node: u32, out: &mut impl Outbox) {
        if node == self.number || self.is_elsewhere(id) {
            return;
        }
        let Some(process) = self.processes.get_mut(&id) else {
            return;
        };
        if process.known_at.insert(node) {
            tell(node, between_nodes::Body::Introduce(self.about(id)), out);
        }
    }

    /// Puts a process of another node into our books that has not been introduced,
    /// and asks to hear of its end. False when its node is gone.
    pub(crate) fn get_to_know(&mut self, id: ProcessId, out: &mut impl Outbox) -> bool {
        if !self.member.infos.contains_key(&id.node()) {
            return false;
        }
        if !self.processes.contains_key(&id) {
            self.admit_foreign(&Introduce { process: id.0, ..Introduce::default() });
            tell(id.node(), between_nodes::Body::Knows(id.0), out);
        }
        true
    }

    /// Another node has to do with a process of ours (F-2).
    pub(crate) fn on_knows(&mut self, node: u32, id: ProcessId, out: &mut impl Outbox) {
        match self.processes.contains_key(&id) {
            true => self.introduce(id, node, out),
            false => tell(node, between_nodes::Body::Ended(self.how_it_died(id)), out),
        }
    }

    /// The end of a process that is not there, as far as it is known.
    pub(crate) fn how_it_died(&self, id: ProcessId) -> ProcessDied {
        let known = self.dead_processes.iter().find(|died| died.process == id.0);
        known.cloned().unwrap_or_else(|| ProcessDied {
            process: id.0,
            reason: "the process is not there any more".into(),
            ..ProcessDied::default()
        })
    }

    /// Another node says that a process of its own is gone.
    pub(crate) fn on_foreign_ended(&mut self, died: ProcessDied, now: u64, out: &mut impl Outbox) {
        let id = ProcessId(died.process);
        if !self.is_elsewhere(id) {
            return;
        }
        if let Some(process) = self.processes.get_mut(&id) {
            process.pid = died.pid;
            process.farewell = Some(Farewell {
                reason: died.reason.clone(),
                intended: died.intended,
                memory: died.memory(),
            });
            self.on_ended(id, &died.reason, died.last_lines, now, out);
        }
    }

    /// A frame came from a process of another node for one of ours that it has no
    /// channel to yet.
    pub(crate) fn on_frame_came(&mut self, from: ProcessId, to: ProcessId, out: &mut impl Outbox) {
        if !self.get_to_know(from, out) {
            return;
        }
        match self.processes.contains_key(&to) {
            true => self.ensure_channel(from, to, out),
            false => tell(from.node(), between_nodes::Body::Ended(self.how_it_died(to)), out),
        }
    }
}
