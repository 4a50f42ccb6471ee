//! Processors and memory of a node, from what its kernel says.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How far apart two looks are at least: the kernel counts hundredths of a second.
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// And at most: what was busy long ago says nothing of now.
const LONGEST_AGO: Duration = Duration::from_secs(30);

/// Of a machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Figures {
    /// Of all its processors, between two looks; nothing at the first.
    pub(crate) cpu_percent: Option<f64>,
    pub(crate) memory_used: u64,
    pub(crate) memory_total: u64,
}

/// What a process takes of its machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Used {
    /// Bytes that it alone uses.
    pub(crate) bytes: u64,
    pub(crate) processor_ms: u64,
}

/// Ticks of all processors of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ticks {
    busy: u64,
    all: u64,
}

/// A look at a machine.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    ticks: Ticks,
    /// Between the look before and this one.
    cpu_percent: Option<f64>,
}

/// What was last seen of each node.
#[derive(Default, Debug)]
pub(crate) struct Machines {
    last: BTreeMap<u32, Look>,
}

impl Machines {
    /// Takes in `machine/stat` and `machine/meminfo` of a node.
    pub(crate) fn look(&mut self, node: u32, stat: &str, meminfo: &str, now: Instant) -> Figures {
        let before = self.last.get(&node).copied();
        let before = before.filter(|last| now.duration_since(last.at) <= LONGEST_AGO);
        let cpu_percent = match (ticks(stat), before) {
            (Some(_), Some(last)) if now.duration_since(last.at) < BETWEEN_LOOKS => {
                last.cpu_percent
            }
            (Some(ticks), before) => {
                let cpu_percent = before.and_then(|last| busy(last.ticks, ticks));
                self.last.insert(node, Look { at: now, ticks, cpu_percent });
                cpu_percent
            }
            (None, _) => None,
        };
        let kilobytes = |name| field(meminfo, name).unwrap_or(0) * 1024;
        let memory_total = kilobytes("MemTotal:");
        let memory_used = memory_total.saturating_sub(kilobytes("MemAvailable:"));
        Figures { cpu_percent, memory_used, memory_total }
    }
}

/// Of all processors, in percent.
fn busy(before: Ticks, now: Ticks) -> Option<f64> {
    let all = now.all.checked_sub(before.all).filter(|all| *all > 0)?;
    let busy = now.busy.saturating_sub(before.busy);
    Some((busy as f64 * 1000.0 / all as f64).round() / 10.0)
}

/// The first line: user, nice, system, idle, waiting for a disk, and more that is busy.
fn ticks(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    // Time of guests is in that of users already.
    let fields: Vec<u64> = line.split_whitespace().take(8).map_while(|f| f.parse().ok()).collect();
    let all: u64 = fields.iter().sum();
    let idle: u64 = fields.iter().skip(3).take(2).sum();
    (fields.len() >= 4).then_some(Ticks { busy: all - idle, all })
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Reads `machine/processes`: by process id.
pub(crate) fn used_by(text: &str) -> BTreeMap<u32, Used> {
    let parse = |line: &str| {
        let mut fields = line.split_whitespace();
        let pid = fields.next()?.parse().ok()?;
        let bytes = fields.next()?.parse().ok()?;
        Some((pid, Used { bytes, processor_ms: fields.next()?.parse().ok()? }))
    };
    text.lines().filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_busy_between_two_looks() {
        let mut machines = Machines::default();
        let begun = Instant::now();
        let after = |looks: u32| begun + looks * BETWEEN_LOOKS;
        let meminfo = "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\n";
        let first = machines.look(1, "cpu  10 0 10 80 0 0 0 0 5 5\ncpu0 1\n", meminfo, begun);
        assert_eq!(first.cpu_percent, None);
        assert_eq!((first.memory_used, first.memory_total), (60 * 1024, 100 * 1024));
        let mut look = |stat: &str, at: Instant| machines.look(1, stat, meminfo, at).cpu_percent;
        assert_eq!(look("cpu  30 0 20 100 50 0 0 0\n", after(1)), Some(30.0));
        // Too soon to tell anything new.
        assert_eq!(look("cpu  31 0 20 100 50 0 0 0\n", after(1)), Some(30.0));
        assert_eq!(look("cpu  130 0 20 100 50 0 0 0\n", after(2)), Some(100.0));
        // What was long ago is not now.
        assert_eq!(look("cpu  130 0 20 200 50 0 0 0\n", after(2) + 2 * LONGEST_AGO), None);
        assert_eq!(machines.look(2, "nonsense", "", begun).cpu_percent, None);
    }

    #[test]
    fn processes_are_read_and_nonsense_is_not() {
        let used = used_by("12 4096 70\nx y z\n13 1\n");
        assert_eq!(used.len(), 1);
        assert_eq!(used[&12], Used { bytes: 4096, processor_ms: 70 });
    }
}
