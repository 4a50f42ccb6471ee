//! Lines on their way to the driver's terminal.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Something for the driver's terminal.
#[derive(Clone, Debug)]
pub struct LogItem {
    /// A sentence of the engine rather than what a worker printed.
    pub is_warning: bool,
    /// Who printed.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// Its machine, if it is another.
    pub host: String,
    /// To standard error.
    pub is_error: bool,
    /// Without line ends.
    pub lines: Vec<String>,
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
        self.lines.iter().map(|line| line.len() + 1).sum()
    }
}

impl Logs {
    pub(crate) fn push(&self, item: LogItem) {
        let mut queue = self.queue.lock();
        if queue.bytes > MOST_WAITING {
            queue.dropped += item.lines.len();
            return;
        }
        queue.bytes += item.bytes();
        queue.items.push_back(item);
        self.changed.notify_one();
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
                return NextLog::Item(LogItem {
                    is_warning: true,
                    name: String::new(),
                    pid: 0,
                    host: String::new(),
                    is_error: true,
                    lines: vec![format!(
                        "{dropped} lines that workers printed were not shown: this terminal did \
                         not keep up. They are in the session's log files."
                    )],
                });
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
        LogItem {
            is_warning: false,
            name: String::new(),
            pid: 1,
            host: String::new(),
            is_error: false,
            lines: vec![line.into()],
        }
    }

    #[test]
    fn patience_ends_and_the_last_item_comes_before_the_end() {
        let logs = Logs::default();
        assert!(matches!(logs.next(Some(Duration::ZERO)), NextLog::Nothing));
        logs.push(item("a"));
        logs.close();
        let NextLog::Item(found) = logs.next(None) else { panic!("there is one") };
        assert_eq!(found.lines, ["a"]);
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
            match item.is_warning {
                true => said = item.lines.concat(),
                false => shown += 1,
            }
        }
        assert!(shown < 40 && said.starts_with(&format!("{} lines", 40 - shown)), "{said}");
    }
}
