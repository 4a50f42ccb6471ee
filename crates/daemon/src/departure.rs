//! The end of processes, and the reasons for it that the zygote knows.

use std::io;

use oxiray_ids::ProcessId;
use oxiray_node::{Event, Outbox};
use oxiray_sys::clock::monotonic_ns;

use crate::connection::Connection;
use crate::io::Io;
use crate::limits::of_processes;
use crate::shell::Shell;
use crate::zygote::{News, describe, log_of, was_sigkill};
use oxiray_session::tail;

/// How long the reason of a worker's end is waited for once its socket closed.
const REASON_LIMIT: u64 = 200_000_000;
/// A zygote that dies twice within this is not started again at once.
const ZYGOTE_REST: u64 = 5_000_000_000;

/// A worker whose socket closed and whose exit status has not come.
#[derive(Debug)]
pub(crate) struct Departing {
    connection: Connection,
    process: ProcessId,
    pub(crate) until: u64,
}

impl Departing {
    /// Sees that nothing is left of it.
    pub(crate) fn kill(&self) {
        self.connection.kill_with_group();
    }
}

impl Shell {
    /// A connection is over. A worker's reason may still be on its way.
    pub(crate) fn close(&mut self, slot: usize) {
        let Some(connection) = self.io.connections.try_remove(slot) else {
            return;
        };
        self.io.poller.remove(connection.socket());
        let Some(process) = connection.process else {
            return;
        };
        self.io.by_process.remove(&process);
        let until = monotonic_ns() + REASON_LIMIT;
        let is_worker = connection.output.is_some();
        let departing = Departing { connection, process, until };
        match is_worker {
            true => self.departing.push(departing),
            false => self.ended(departing, "it closed its connection".into()),
        }
    }

    /// Gives up waiting for reasons. Whoever lives on without a connection can
    /// be reached by nobody, so it must not.
    pub(crate) fn end_overdue(&mut self, now: u64) {
        while let Some(at) = self.departing.iter().position(|departing| now >= departing.until) {
            let departing = self.departing.swap_remove(at);
            departing.connection.kill();
            self.ended(departing, "it ended, and its exit status is not known".into());
        }
    }

    fn ended(&mut self, departing: Departing, reason: String) {
        let mut last_lines = Vec::new();
        if let Some(output) = departing.connection.output {
            // Its zygote has done that, unless it died before.
            departing.kill();
            let reader = self.node.reader_of(departing.process);
            self.io.outputs[output].reader = reader;
            self.io.read_output(output, 0, true);
            self.io.read_output(output, 1, true);
            self.io.outputs[output].process = None;
            last_lines = self.io.outputs[output].last_lines();
            self.io.tidy_output(output);
        }
        tracing::info!(pid = departing.connection.pid, reason, "process ended");
        // What it had not finished shows as failed to whoever looks at the history of tasks.
        self.record().ended(departing.process);
        self.event_logs.ended(departing.process, departing.connection.pid);
        self.memory_watch.ended(departing.process);
        self.event(Event::Ended { process: departing.process, reason, last_lines });
    }

    pub(crate) fn on_zygote(&mut self, environment: u32) {
        while let Some(zygote) = self.io.zygotes.get_mut(&environment) {
            match zygote.receive() {
                Ok(Some(News::Forked(pid))) => {
                    // It may have registered, and even ended, before this was read.
                    let here = self.io.connections.iter().map(|(_, connection)| connection);
                    let gone = self.departing.iter().map(|departing| &departing.connection);
                    let registered =
                        here.chain(gone).any(|other| other.pid == pid && other.process.is_some());
                    zygote.forked(pid, registered);
                }
                Ok(Some(News::Refused(error))) => {
                    zygote.refused();
                    let reason = of_processes(rustix::io::Errno::from_raw_os_error(error));
                    self.io.failures.push(Event::StartFailed { environment, reason });
                }
                Ok(Some(News::Exited(pid, status))) => {
                    self.on_worker_exit(environment, pid, status);
                }
                Ok(Some(News::Making(what))) => {
                    self.event(Event::TemplateSays(environment, what));
                }
                Ok(Some(News::Ready)) => self.event(Event::Template(environment, Ok(()))),
                Ok(Some(News::Failed(why))) => {
                    self.io.end_template(environment);
                    return self.event(Event::Template(environment, Err(why)));
                }
                Ok(None) => tracing::warn!("the zygote said something that is not understood"),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.on_zygote_gone(environment),
            }
        }
    }

    fn on_zygote_gone(&mut self, environment: u32) {
        self.io.zygote_gone(environment);
        if environment != 0 {
            return; // It is made again when somebody needs it.
        }
        let now = monotonic_ns();
        let again = self.zygote_died_at.replace(now).is_some_and(|at| now < at + ZYGOTE_REST);
        // One that keeps dying is started only when the core wants a worker: it
        // waits longer each time, and tells the user after a few.
        if !again && let Err(error) = self.io.ensure_zygote() {
            tracing::warn!(%error, "no new zygote");
        }
    }

    fn on_worker_exit(&mut self, environment: u32, pid: u32, status: i32) {
        let reason = describe(status);
        if self.io.zygotes.get_mut(&environment).is_some_and(|zygote| zygote.settle(pid)) {
            let log = tail(&log_of(&self.io.session.logs(), environment), 2000);
            let reason = format!("a worker ended before it was ready: {reason}. It wrote:\n{log}");
            self.io.failures.push(Event::StartFailed { environment, reason });
            return;
        }
        let connected = self.io.connections.iter();
        let mut connected =
            connected.filter(|(_, other)| other.pid == pid && other.output.is_some());
        if let Some(slot) = connected.next().map(|(slot, _)| slot) {
            // What it said before it ended counts.
            while self.io.ending.is_none() && self.read_packets(slot) {}
            self.close(slot);
        }
        if let Some(at) =
            self.departing.iter().position(|departing| departing.connection.pid == pid)
        {
            let departing = self.departing.swap_remove(at);
            // Unless it was us: then the node knows why.
            let process = departing.process;
            let enforced = self.io.enforcement.as_mut();
            if let Some(reason) = enforced.and_then(|enforced| enforced.ended(process)) {
                self.event(Event::OutOfMemory { process, reason, over_limit: true });
            } else if was_sigkill(status)
                && let Some(reason) = self.memory_watch.killed_by_kernel(monotonic_ns())
            {
                self.event(Event::OutOfMemory { process, reason, over_limit: false });
            }
            self.ended(departing, reason);
        }
    }
}

impl Io {
    /// A zygote is gone: takes it away, and counts the starts that go with it.
    pub(crate) fn zygote_gone(&mut self, environment: u32) {
        let Some(zygote) = self.zygotes.remove(&environment) else {
            return;
        };
        self.poller.remove(zygote.socket());
        let outstanding = zygote.outstanding();
        let status = zygote.bury();
        let log = tail(&log_of(&self.session.logs(), environment), 2000);
        tracing::warn!(?status, outstanding, environment, "zygote ended");
        let how = status.map_or("it is gone".into(), |status| status.to_string());
        let reason = format!("the process that starts workers ended ({how}). It wrote:\n{log}");
        let failed = || Event::StartFailed { environment, reason: reason.clone() };
        self.failures.extend(std::iter::repeat_with(failed).take(outstanding));
        if environment != 0 {
            self.failures.push(Event::Template(environment, Err(reason)));
        }
    }
}
