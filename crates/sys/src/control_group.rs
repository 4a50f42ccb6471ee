//! Control groups of the kernel, version 1 and 2: where this process's are, and what their files say.
//!
//! A group is a folder. What it says of memory holds for all processes in it and in those below.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the kernel's groups are, unless they were mounted elsewhere.
pub const USUAL_ROOT: &str = "/sys/fs/cgroup";

/// Which of the two interfaces a group has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// A tree for each controller.
    One,
    /// One tree for all.
    Two,
}

/// A group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlGroup {
    /// Which interface.
    pub version: Version,
    /// Its folder.
    pub folder: PathBuf,
}

impl ControlGroup {
    /// The one of this process that `controller` is for; `None`: it is not mounted.
    pub fn own(root: &Path, controller: &str) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::named_by(root, controller, &own)
    }

    /// The same by what `/proc/PID/cgroup` says. Where a tree of version 1 has the controller, that
    /// counts, and the one of version 2 does not have it.
    fn named_by(root: &Path, controller: &str, own: &str) -> Option<Self> {
        let mut found = None;
        for line in own.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
                continue;
            };
            let path = path.trim_start_matches('/');
            if controllers.split(',').any(|name| name == controller) {
                let folder = root.join(controller).join(path);
                found = Some(Self { version: Version::One, folder });
                break;
            }
            if controllers.is_empty() {
                let trees = [root.to_owned(), root.join("unified")];
                let tree = trees.into_iter().find(|tree| tree.join("cgroup.controllers").exists());
                found = tree.map(|tree| Self { version: Version::Two, folder: tree.join(path) });
            }
        }
        found.filter(|group| group.folder.is_dir())
    }

    /// This one, and those above it.
    pub fn with_ancestors(&self, root: &Path) -> Vec<Self> {
        let above = self.folder.ancestors().take_while(|folder| folder.starts_with(root));
        above.map(|folder| Self { version: self.version, folder: folder.to_owned() }).collect()
    }

    /// One below it.
    pub fn child(&self, name: &str) -> Self {
        Self { version: self.version, folder: self.folder.join(name) }
    }

    /// Bytes that its processes may use; `None`: as many as there are.
    pub fn memory_limit(&self) -> Option<u64> {
        self.number(["memory.limit_in_bytes", "memory.max"])
    }

    /// Bytes that its processes use and that cannot be had back for the asking.
    pub fn memory_used(&self) -> Option<u64> {
        let used = self.number(["memory.usage_in_bytes", "memory.current"])?;
        let cache = self.field(
            ["memory.stat", "memory.stat"],
            self.of(["total_inactive_file", "inactive_file"]),
        );
        Some(used.saturating_sub(cache.unwrap_or(0)))
    }

    /// How many of its processes the kernel has killed for want of memory.
    pub fn kernel_kills(&self) -> Option<u64> {
        self.field(["memory.oom_control", "memory.events"], "oom_kill")
    }

    /// How long all of its processes together have stood still for want of memory, in
    /// microseconds. Version 1 does not say.
    pub fn stalled_us(&self) -> Option<u64> {
        stalled_us(&fs::read_to_string(self.folder.join("memory.pressure")).ok()?)
    }

    /// How many processes and threads may be in it; `None`: any number.
    pub fn most_pids(&self) -> Option<u64> {
        self.number(["pids.max", "pids.max"])
    }

    /// How many are.
    pub fn pids(&self) -> Option<u64> {
        self.number(["pids.current", "pids.current"])
    }

    /// What of the two is for this version.
    pub fn of<T: Copy>(&self, both: [T; 2]) -> T {
        match self.version {
            Version::One => both[0],
            Version::Two => both[1],
        }
    }

    fn number(&self, names: [&str; 2]) -> Option<u64> {
        fs::read_to_string(self.folder.join(self.of(names))).ok()?.trim().parse().ok()
    }

    fn field(&self, names: [&str; 2], line: &str) -> Option<u64> {
        let text = fs::read_to_string(self.folder.join(self.of(names))).ok()?;
        crate::machine::field(&text, line)
    }
}

/// How many processes and threads this process's user and group may have, in words, for whoever is
/// refused another. `root`: where the kernel's groups are.
pub fn limits_of_processes(root: &Path) -> String {
    let mut limits = Vec::new();
    let own = rustix::process::getrlimit(rustix::process::Resource::Nproc).current;
    if let Some(most) = own {
        limits.push(format!("this user may have {most} processes and threads (ulimit -u)"));
    }
    let groups = ControlGroup::own(root, "pids").map(|own| own.with_ancestors(root));
    let limited = groups.into_iter().flatten().find_map(|group| Some((group.most_pids()?, group)));
    if let Some((most, group)) = limited {
        let used = group.pids().unwrap_or_default();
        let folder = group.folder.display();
        limits.push(format!("its control group {folder} may have {most}, and has {used}"));
    }
    limits.join("; ")
}

/// `full avg10=0.00 avg60=0.00 avg300=0.00 total=12`: the number at the end.
pub(crate) fn stalled_us(pressure: &str) -> Option<u64> {
    let full = pressure.lines().find(|line| line.starts_with("full "))?;
    full.rsplit_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root =
            std::env::temp_dir().join(format!("oxiray-groups-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn version_two_is_read() {
        let root = tree(
            "two",
            &[
                ("cgroup.controllers", "cpu memory"),
                ("a/memory.max", "max\n"),
                ("a/b/memory.max", "1000\n"),
                ("a/b/memory.current", "700\n"),
                ("a/b/memory.stat", "anon 1\ninactive_file 100\n"),
                ("a/b/memory.events", "oom 4\noom_kill 3\n"),
                ("a/b/memory.pressure", "some avg10=0.00 total=9\nfull avg10=0.00 total=5\n"),
            ],
        );
        let own = ControlGroup::named_by(&root, "memory", "0::/a/b\n").unwrap();
        assert_eq!(own.version, Version::Two);
        assert_eq!((own.memory_limit(), own.memory_used()), (Some(1000), Some(600)));
        assert_eq!((own.kernel_kills(), own.stalled_us()), (Some(3), Some(5)));
        let above: Vec<_> =
            own.with_ancestors(&root).iter().map(ControlGroup::memory_limit).collect();
        assert_eq!(above, [Some(1000), None, None]);
        assert_eq!(ControlGroup::named_by(&root, "memory", "0::/gone\n"), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn version_one_counts_where_it_has_the_controller() {
        let root = tree(
            "one",
            &[
                ("unified/cgroup.controllers", ""),
                ("memory/a/memory.limit_in_bytes", "500\n"),
                ("memory/a/memory.usage_in_bytes", "90\n"),
                ("memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 40\n"),
                ("memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
            ],
        );
        let own = ControlGroup::named_by(&root, "memory", "4:memory:/a\n0::/\n").unwrap();
        assert_eq!(own.version, Version::One);
        assert_eq!((own.memory_limit(), own.memory_used()), (Some(500), Some(50)));
        assert_eq!((own.kernel_kills(), own.stalled_us()), (Some(2), None));
        let cpu = ControlGroup::named_by(&root, "cpu", "4:memory:/a\n0::/\n").unwrap();
        assert_eq!(cpu.folder, root.join("unified"));
        fs::remove_dir_all(root).unwrap();
    }
}
