//! Lines on their way to the driver's terminal.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxiray_owner::Failure;
use parking_lot::{Condvar, Mutex};

/// Something for the driver's terminal.
#[derive(Clone, Debug)]
pub enum LogItem {
    /// What a worker printed.
    Printed {
        /// Who printed.
        name: String,
        /// Its process id.
        pid: u32,
        /// Its machine, if it is another.
        host: String,
        /// To standard error.
        is_error: bool,
        /// Without line ends.
        lines: Vec<String>,
    },
    /// A sentence of the engine.
    Warning(String),
    /// The error of a task that nobody has looked at, and nobody can any more.
    Unhandled(Arc<Failure>),
}

/// What waiting for an item came to.
#[derive(Debug)]
pub enum NextLog {
    /// The next one.
    Item(LogItem),
    /// None for as long as was to be waited.
    Nothing,
    /// The last has been taken.
    Closed,
}

/// Lines on their way to the driver's terminal.
#[derive(Default)]
pub struct Logs {
    queue: Mutex<LogQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct LogQueue {
    items: VecDeque<LogItem>,
    bytes: usize,
    dropped: usize,
    closed: bool,
}

/// What may wait for a terminal that does not keep up. The session's log files have all.
const MOST_WAITING: usize = 16 << 20;

impl LogItem {
    fn bytes(&self) -> usize {
        match self {
            Self::Printed { lines, .. } => lines.iter().map(|line| line.len() + 1).sum(),
            Self::Warning(text) => text.len(),
            Self::Unhandled(failure) => failure.message.len() + failure.data.len(),
        }
    }

    fn lines(&self) -> usize {
        if let Self::Printed { lines, .. } = self { lines.len() } else { 1 }
    }
}

impl Logs {
    pub(crate) fn push(&self, item: LogItem) {
        let mut queue = self.queue.lock();
        if queue.closed {
            return;
        }
        if queue.bytes > MOST_WAITING {
            queue.dropped += item.lines();
            return;
        }
        queue.bytes += item.bytes();
        queue.items.push_back(item);
        self.changed.notify_one();
    }

    /// The next error that nobody has looked at, in a process whose log has nothing else.
    pub(crate) fn take_unhandled(&self) -> Option<Arc<Failure>> {
        let mut queue = self.queue.lock();
        let item = queue.items.pop_front()?;
        queue.bytes -= item.bytes();
        if let LogItem::Unhandled(failure) = item { Some(failure) } else { None }
    }

    /// No more will come.
    pub(crate) fn close(&self) {
        self.queue.lock().closed = true;
        self.changed.notify_all();
    }

    /// Sleeps for the next item, for `patience` if there is a limit.
    pub fn next(&self, patience: Option<Duration>) -> NextLog {
        let until = patience.and_then(|patience| Instant::now().checked_add(patience));
        let mut queue = self.queue.lock();
        loop {
            if let Some(item) = queue.items.pop_front() {
                queue.bytes -= item.bytes();
                return NextLog::Item(item);
            }
            if queue.dropped > 0 {
                let dropped = std::mem::take(&mut queue.dropped);
                return NextLog::Item(LogItem::Warning(format!(
                    "{dropped} lines that workers printed were not shown: this terminal did not \
                     keep up. They are in the session's log files."
                )));
            }
            if queue.closed {
                return NextLog::Closed;
            }
            match until {
                None => self.changed.wait(&mut queue),
                Some(until) if Instant::now() >= until => return NextLog::Nothing,
                Some(until) => {
                    self.changed.wait_until(&mut queue, until);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(line: &str) -> LogItem {
        let (name, host, lines) = (String::new(), String::new(), vec![line.into()]);
        LogItem::Printed { name, pid: 1, host, is_error: false, lines }
    }

    #[test]
    fn patience_ends_and_the_last_item_comes_before_the_end() {
        let logs = Logs::default();
        assert!(matches!(logs.next(Some(Duration::ZERO)), NextLog::Nothing));
        logs.push(item("a"));
        logs.close();
        let NextLog::Item(LogItem::Printed { lines, .. }) = logs.next(None) else {
            panic!("there is one")
        };
        assert_eq!(lines, ["a"]);
        assert!(matches!(logs.next(None), NextLog::Closed));
    }

    #[test]
    fn what_a_terminal_does_not_take_is_counted() {
        let logs = Logs::default();
        let long = "x".repeat(1 << 20);
        for _ in 0..40 {
            logs.push(item(&long));
        }
        logs.close();
        let mut shown = 0;
        let mut said = String::new();
        while let NextLog::Item(item) = logs.next(None) {
            match item {
                LogItem::Warning(text) => said = text,
                _ => shown += 1,
            }
        }
        assert!(shown < 40 && said.starts_with(&format!("{} lines", 40 - shown)), "{said}");
    }
}
