//! Lines on their way to the driver's terminal.

use std::collections::VecDeque;

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

    /// Sleeps for the next item; `None` after the last.
    pub fn next(&self) -> Option<LogItem> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(item) = queue.items.pop_front() {
                queue.bytes -= item.bytes();
                return Some(item);
            }
            if queue.dropped > 0 {
                let dropped = std::mem::take(&mut queue.dropped);
                return Some(LogItem {
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
                return None;
            }
            self.changed.wait(&mut queue);
        }
    }
}
