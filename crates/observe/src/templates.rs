//! The processes that workers of a node are forked from, and the memory that is theirs.
//!
//! Found by what the kernel says, on the node's own machine: zygotes are children of the node
//! service and lead a group; what is in that group has loaded modules for workers. Workers have
//! groups of their own.

use std::fs;

/// What the templates of a node have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Templates {
    /// Processes.
    pub processes: u64,
    /// Their memory; of what they share with workers, their part.
    pub bytes: u64,
}

/// Those of the node whose service is this process.
pub fn templates_of(node_service: u32) -> Templates {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Templates::default();
    };
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let all: Vec<(u32, Place)> = numbers.filter_map(|pid| Some((pid, place(pid)?))).collect();
    let is_zygote = |group: u32| {
        all.iter().any(|&(pid, place)| {
            pid == group && place.group == pid && place.parent == node_service && is_zygote(pid)
        })
    };
    let templates = all.iter().filter(|(_, place)| is_zygote(place.group));
    templates.fold(Templates::default(), |sum, &(pid, _)| Templates {
        processes: sum.processes + 1,
        bytes: sum.bytes + share_of_memory(pid),
    })
}

#[derive(Clone, Copy)]
struct Place {
    parent: u32,
    group: u32,
}

fn place(pid: u32) -> Option<Place> {
    place_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name of a process, in brackets, may have anything in it.
fn place_in(stat: &str) -> Option<Place> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
    Some(Place { parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
}

fn is_zygote(pid: u32) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command
        .split(|byte| *byte == 0)
        .any(|word| word == b"oxiray._zygote" || word == b"oxiray._template")
}

fn share_of_memory(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    share_in(&text).unwrap_or(0)
}

fn share_in(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        let place = place_in("12 (a) b) S 7 12 12 0 -1").expect("a line of stat");
        assert_eq!((place.parent, place.group), (7, 12));
        assert!(place_in("12").is_none());
        assert_eq!(share_in("Rss:  900 kB\nPss:                 12 kB\n"), Some(12 << 10));
        assert_eq!(share_in(""), None);
    }

    #[test]
    fn a_process_without_children_has_none() {
        assert_eq!(templates_of(u32::MAX), Templates::default());
    }
}
