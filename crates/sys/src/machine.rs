//! What the machine has, and which it is, read from the kernel.

use std::fs;
use std::path::Path;

use crate::control_group::{ControlGroup, USUAL_ROOT, stalled_us};

/// What tells this machine from others, to be written into what it makes on a disk that several may
/// share: the boot, which containers on it have in common, and the name, which stays over a boot.
pub fn mark() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (boot, name) = (read("/proc/sys/kernel/random/boot_id"), read("/proc/sys/kernel/hostname"));
    format!("{}\n{}\n", boot.trim(), name.trim())
}

/// Whether this machine wrote that mark, now or before its last boot.
pub fn is_mark_of_here(mark_there: &str) -> bool {
    let here = mark();
    mark_there.lines().zip(here.lines()).any(|(there, here)| there == here && !here.is_empty())
}

/// Memory of the machine, or of the control group that this process may use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Memory {
    /// Bytes there are.
    pub total: u64,
    /// Bytes in use that cannot be had back for the asking.
    pub used: u64,
}

impl Memory {
    /// Share in use, 0 to 1.
    pub fn used_fraction(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.used as f64 / self.total as f64 }
    }
}

/// Reads the memory of the machine; where to look is found out once.
#[derive(Debug)]
pub struct MemoryReader {
    groups: Vec<ControlGroup>,
}

impl Default for MemoryReader {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryReader {
    /// One that looks at the groups which this process is in now.
    pub fn new() -> Self {
        Self::of_groups_at(Path::new(USUAL_ROOT))
    }

    /// The same, where the kernel's groups are at `root`.
    pub fn of_groups_at(root: &Path) -> Self {
        let own = ControlGroup::own(root, "memory");
        Self { groups: own.map(|own| own.with_ancestors(root)).unwrap_or_default() }
    }

    /// Of the machine and all groups above this process, the one nearest its limit.
    pub fn read(&self) -> Memory {
        let machine = of_machine(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
        let groups = self.groups.iter().filter_map(|group| {
            let total = group.memory_limit().filter(|&limit| limit < machine.total)?;
            Some(Memory { total, used: group.memory_used()? })
        });
        let nearest = |a: &Memory, b: &Memory| a.used_fraction().total_cmp(&b.used_fraction());
        groups.chain([machine]).max_by(nearest).unwrap_or(machine)
    }

    /// Bytes that this process and its workers may use at most.
    pub fn limit(&self) -> u64 {
        let machine = of_machine(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
        let limits = self.groups.iter().filter_map(ControlGroup::memory_limit);
        limits.chain([machine.total]).min().unwrap_or(0)
    }

    /// How many processes the kernel has killed for want of memory: of this group, or of the
    /// machine where there is none.
    pub fn kernel_kills(&self) -> u64 {
        let of_group = self.groups.first().and_then(ControlGroup::kernel_kills);
        let machine = || field(&fs::read_to_string("/proc/vmstat").ok()?, "oom_kill");
        of_group.or_else(machine).unwrap_or(0)
    }

    /// How long everything has stood still for want of memory, in microseconds, as far as the
    /// kernel says.
    pub fn stalled_us(&self) -> u64 {
        let of_group = self.groups.iter().find_map(ControlGroup::stalled_us);
        let machine = || stalled_us(&fs::read_to_string("/proc/pressure/memory").ok()?);
        of_group.or_else(machine).unwrap_or(0)
    }
}

pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        rest.starts_with([':', ' ', '\t']).then_some(rest)
    })?;
    line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
}

fn of_machine(meminfo: &str) -> Memory {
    let kilobytes = |name| field(meminfo, name).unwrap_or(0) * 1024;
    let (total, available) = (kilobytes("MemTotal"), kilobytes("MemAvailable"));
    Memory { total, used: total.saturating_sub(available) }
}

/// Bytes that process `pid` alone uses: what it shares, the arena above all, is not its fault.
pub fn own_memory(pid: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let mut pages = statm.split_whitespace().skip(1).map(|text| text.parse().unwrap_or(0));
    let (resident, shared): (u64, u64) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
    resident.saturating_sub(shared) * rustix::param::page_size() as u64
}

/// Processor time that process `pid` has used, in milliseconds.
pub fn processor_ms(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in parentheses, may contain anything.
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|text| text.parse::<u64>().ok()).sum();
    ticks * 1000 / rustix::param::clock_ticks_per_second()
}

/// Name of the machine.
pub fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Bytes that nobody can guess.
pub fn random_bytes<const N: usize>() -> std::io::Result<[u8; N]> {
    use std::io::Read;
    let mut bytes = [0; N];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_known_by_its_boot_or_its_name() {
        let here = mark();
        let (boot, name) = here.trim_end().split_once('\n').expect("two lines");
        assert!(is_mark_of_here(&here));
        assert!(is_mark_of_here(&format!("{boot}\nother\n")), "another container of this machine");
        assert!(is_mark_of_here(&format!("other\n{name}\n")), "this machine before its last boot");
        assert!(!is_mark_of_here("other\nother\n") && !is_mark_of_here(""));
    }

    #[test]
    fn the_kernels_tables_are_read() {
        let text = "MemTotal:       1000 kB\nMemFree: 5 kB\nMemAvailable:    250 kB\n";
        let memory = of_machine(text);
        assert_eq!(memory, Memory { total: 1_024_000, used: 768_000 });
        assert!((memory.used_fraction() - 0.75).abs() < 1e-9);
        assert_eq!(field("a 1\ninactive_file 77\n", "inactive_file"), Some(77));
    }

    #[test]
    fn this_machine_can_be_read() {
        let reader = MemoryReader::new();
        let memory = reader.read();
        assert!(memory.total > 0 && memory.used > 0 && memory.used <= memory.total);
        assert!(reader.limit() > 0);
        assert!(own_memory(std::process::id()) > 0);
    }
}
