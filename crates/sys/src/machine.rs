//! What the machine has, read from the kernel.

use std::fs;
use std::path::{Path, PathBuf};

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

/// Where a control group says its limit, its use, and the part of that which is cache.
#[derive(Debug)]
struct Group {
    limit: PathBuf,
    used: PathBuf,
    statistics: PathBuf,
    /// Name of the cache's line in `statistics`.
    cache: &'static str,
}

/// Reads the memory of the machine; where to look is found out once.
#[derive(Debug)]
pub struct MemoryReader {
    groups: Vec<Group>,
}

impl Default for MemoryReader {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryReader {
    /// One that looks at the groups which this process is in now.
    pub fn new() -> Self {
        Self { groups: groups() }
    }

    /// Of the machine and all groups above this process, the one nearest its limit.
    pub fn read(&self) -> Memory {
        let machine = of_machine(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
        let groups = self.groups.iter().filter_map(|group| {
            let total = read_number(&group.limit).filter(|&limit| limit < machine.total)?;
            let statistics = fs::read_to_string(&group.statistics).unwrap_or_default();
            let cache = field(&statistics, group.cache).unwrap_or(0);
            let used = read_number(&group.used)?.saturating_sub(cache);
            Some(Memory { total, used })
        });
        let nearest = |a: &Memory, b: &Memory| a.used_fraction().total_cmp(&b.used_fraction());
        groups.chain([machine]).max_by(nearest).unwrap_or(machine)
    }

    /// Bytes that this process and its workers may use at most.
    pub fn limit(&self) -> u64 {
        let machine = of_machine(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
        let limits = self.groups.iter().filter_map(|group| read_number(&group.limit));
        limits.chain([machine.total]).min().unwrap_or(0)
    }
}

fn groups() -> Vec<Group> {
    let mut found = Vec::new();
    for line in fs::read_to_string("/proc/self/cgroup").unwrap_or_default().lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next(), parts.next(), parts.next());
        let path = Path::new(path.unwrap_or("/").trim_start_matches('/'));
        let (root, names) = match controllers {
            Some("") => ("/sys/fs/cgroup", ["memory.max", "memory.current", "inactive_file"]),
            Some(names) if names.split(',').any(|name| name == "memory") => (
                "/sys/fs/cgroup/memory",
                ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"],
            ),
            _ => continue,
        };
        for above in path.ancestors() {
            let folder = Path::new(root).join(above);
            if read_number(&folder.join(names[0])).is_some() {
                let [limit, used, cache] = names;
                found.push(Group {
                    limit: folder.join(limit),
                    used: folder.join(used),
                    statistics: folder.join("memory.stat"),
                    cache,
                });
            }
        }
    }
    found
}

fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
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
