//! Who connects, and who may register.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use oxiray_ids::{JobId, ProcessId};
use oxiray_node::Event;
use oxiray_sys::packet;
use oxiray_wire::control::{JobConfig, ProcessKind, Register, Text, from_node};

use crate::connection::Connection;
use crate::output::Output;
use crate::poller::Token;
use crate::shell::{Shared, Shell};

impl Shell {
    /// Registers the driver at the other end of `connection`.
    pub(crate) fn add_driver(&mut self, connection: Connection, job: JobConfig) -> io::Result<()> {
        if let Some(pidfd) = &connection.pidfd {
            // A child of the driver may hold its socket open after it has died.
            self.io.poller.add(pidfd, Token::DriverEnded)?;
        }
        let slot = self.add_connection(connection)?;
        self.register(slot, ProcessKind::Driver, Vec::new(), job, 0);
        self.io.driver = self.io.connections[slot].process.unwrap_or(ProcessId(u64::MAX));
        Ok(())
    }

    fn add_connection(&mut self, connection: Connection) -> io::Result<usize> {
        let entry = self.io.connections.vacant_entry();
        let slot = entry.key();
        self.io.poller.add(connection.socket(), Token::Connection(slot))?;
        entry.insert(connection);
        Ok(slot)
    }

    pub(crate) fn on_connect(&mut self) {
        let Ok(socket) = packet::accept(&self.listener) else {
            return;
        };
        let connection = Connection::new(socket);
        if let Err(error) = connection.and_then(|connection| self.add_connection(connection)) {
            tracing::warn!(%error, "a connection was refused");
        }
    }

    pub(crate) fn on_register(&mut self, slot: usize, register: &Register, fds: Vec<OwnedFd>) {
        let refusal = if register.version != oxiray_wire::VERSION {
            Some(version_refusal(register.version))
        } else {
            match register.kind() {
                ProcessKind::Driver if self.io.reach.is_alone() => {
                    Some("this session belongs to the driver that started it".into())
                }
                ProcessKind::Driver => self.other_python(register),
                ProcessKind::Foreign => Some("it belongs to another node".into()),
                ProcessKind::Worker if fds.len() != 2 => {
                    Some("a worker registers with its two pipes".into())
                }
                _ => None,
            }
        };
        match refusal {
            None => {
                let job = register.job.clone().unwrap_or_default();
                self.register(slot, register.kind(), fds, job, register.environment);
            }
            Some(text) => self.refuse(slot, text),
        }
    }

    /// Why a driver with another Python cannot work with the workers of this node.
    fn other_python(&self, register: &Register) -> Option<String> {
        let theirs = &register.job.as_ref()?.python;
        let ours = &self.io.config.cluster.as_ref()?.python_version;
        (!theirs.is_empty() && !ours.is_empty() && theirs != ours).then(|| {
            format!(
                "this driver runs Python {theirs}, and the workers of this cluster run Python \
                 {ours}: functions and values cannot pass between them. Run the driver with \
                 Python {ours}, or start the cluster with Python {theirs}"
            )
        })
    }

    fn refuse(&mut self, slot: usize, text: String) {
        tracing::warn!(text, "registration refused");
        self.io.send_to(slot, from_node::Body::Stopped(Text { text }), &[]);
        self.close(slot);
    }

    fn register(
        &mut self,
        slot: usize,
        kind: ProcessKind,
        pipes: Vec<OwnedFd>,
        job: JobConfig,
        environment: u32,
    ) {
        let pid = self.io.connections[slot].pid;
        let (namespace, settings) = (job.namespace.clone(), job.settings.clone());
        let admitted = match self.node.admit(kind, pid, job, environment) {
            Ok(admitted) => admitted,
            Err(error) => return self.refuse(slot, error.to_string()),
        };
        let process = admitted.process;
        self.io.connections[slot].process = Some(process);
        self.io.connections[slot].is_driver = kind == ProcessKind::Driver;
        self.io.by_process.insert(process, slot);
        if kind == ProcessKind::Worker {
            if let Some(zygote) = self.io.zygotes.get_mut(&environment) {
                zygote.settle(pid);
            }
            self.add_output(slot, process, pid, pipes);
        }
        let mut registered = self.shared.registered.clone();
        registered.process = process.0;
        registered.bell = admitted.bell;
        if kind != ProcessKind::Observer
            && let Some(log) = self.event_logs.give(process)
        {
            self.record().given(log.number, process);
            (registered.event_log, registered.event_chunk) = (log.number, log.chunk);
        }
        registered.job = admitted.job.unwrap_or(JobId::NIL).0.to_vec();
        if kind == ProcessKind::Driver {
            registered.driver = process.0;
            registered.namespace = namespace.clone();
            registered.settings = settings.clone();
            if self.io.reach.is_alone() {
                // Workers of the only driver need not be told again.
                self.shared.registered.driver = process.0;
                self.shared.registered.namespace = namespace;
                self.shared.registered.settings = settings;
            }
        }
        let Shared { bells, arena, table, .. } = &self.shared;
        let gateway = self.io.reach.net().map(|net| net.bridge.waker().try_clone());
        let mut fds = vec![bells.as_fd(), arena.as_fd(), table.as_fd()];
        if let Some(Ok(gateway)) = &gateway {
            fds.push(gateway.as_fd());
        }
        self.io.send_to(slot, from_node::Body::Registered(registered), &fds);
        self.event(Event::Ready(process));
    }

    fn add_output(&mut self, slot: usize, process: ProcessId, pid: u32, pipes: Vec<OwnedFd>) {
        self.io.ended_logs.reuse(pid);
        let (logs, limits) = (self.io.session.logs(), self.io.log_limits);
        let output = match Output::new(pid, process, pipes, &logs, limits) {
            Ok(output) => output,
            Err(error) => return tracing::warn!(pid, %error, "output cannot be read"),
        };
        let entry = self.io.outputs.vacant_entry();
        let index = entry.key();
        let output = entry.insert(output);
        for stream in 0..2 {
            if let Some(pipe) = output.pipe(stream)
                && let Err(error) = self.io.poller.add(pipe, Token::Output(index, stream))
            {
                tracing::warn!(pid, %error, "output cannot be read");
            }
        }
        self.io.connections[slot].output = Some(index);
    }
}

pub(crate) fn version_refusal(theirs: u32) -> String {
    format!(
        "this node service speaks version {} of the protocol, the process version {theirs}: \
         they come from different installations of Oxiray",
        oxiray_wire::VERSION
    )
}
