//! Control groups for workers: the kernel sees to it that a task has the memory and the processor
//! time that it asked for, and no more (`--enforce`, `init(_enforce=True)`).
//!
//! A worker is in a group of its own for each lease and for its life as an actor. So what counts is
//! what it takes from then on, not what its interpreter had, and a group that killed one of its
//! processes tells who took too much.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use oxiray_ids::ProcessId;
use oxiray_sys::control_group::{ControlGroup, Version};
use oxiray_wire::control::{Amount, UNIT};
use oxiray_words::show_bytes;
use rustix::io::Errno;

const CONTROLLERS: [&str; 2] = ["memory", "cpu"];
/// The quota of processor time is of this many microseconds.
const PERIOD_US: u64 = 100_000;
/// The kernel takes no smaller quota.
const LEAST_QUOTA_US: u64 = 1_000;

/// The groups of one session.
#[derive(Debug)]
pub(crate) struct Enforcement {
    /// The session's, one for each controller; in version 2 they are the same.
    groups: [ControlGroup; 2],
    workers: BTreeMap<ProcessId, Confined>,
    last: u64,
    /// Those that something was still in when they were to go.
    left: Vec<PathBuf>,
}

/// A worker in its group.
#[derive(Debug)]
struct Confined {
    groups: [ControlGroup; 2],
    memory: Option<u64>,
}

impl Enforcement {
    /// Makes the session's groups, or says in one sentence why there are none.
    pub(crate) fn begin(root: &Path, session: &str) -> io::Result<Self> {
        let make = |controller: &str| -> Result<ControlGroup, String> {
            let own = ControlGroup::own(root, controller).ok_or_else(|| {
                format!("the controller {controller} is not mounted at {}", root.display())
            })?;
            let group = own.child(&format!("oxiray-{session}"));
            let said = |error: io::Error| format!("{}: {error}", own.folder.display());
            if own.version == Version::Two {
                delegate(&own, controller).map_err(said)?;
            }
            match fs::create_dir(&group.folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(said(error));
                }
                _ => {}
            }
            if group.version == Version::Two {
                write(&group.folder.join("cgroup.subtree_control"), &format!("+{controller}"))
                    .map_err(said)?;
            }
            Ok(group)
        };
        let [memory, cpu] = CONTROLLERS.map(make);
        match (memory, cpu) {
            (Ok(memory), Ok(cpu)) => Ok(Self {
                groups: [memory, cpu],
                workers: BTreeMap::new(),
                last: 0,
                left: Vec::new(),
            }),
            (memory, cpu) => {
                let why = memory.err().or(cpu.err()).unwrap_or_default();
                Err(io::Error::other(format!(
                    "memory= and num_cpus= cannot be enforced: {why}. It needs control groups that \
                     this user may make, as root has, or `systemd-run --user --scope -p \
                     Delegate=yes`; without --enforce and _enforce= nothing is limited"
                )))
            }
        }
    }

    /// From now on a worker has so much, and no more.
    pub(crate) fn confine(&mut self, worker: ProcessId, pid: u32, amounts: &[Amount]) {
        let amount = |name: &str| amounts.iter().find(|amount| amount.name == name);
        let memory = amount("memory").map(|memory| memory.amount / UNIT);
        let quota = amount("CPU").map(|cpus| (cpus.amount * PERIOD_US / UNIT).max(LEAST_QUOTA_US));
        self.last += 1;
        let name = format!("worker-{pid}-{}", self.last);
        let groups = self.groups.clone().map(|group| group.child(&name));
        // The old ones are empty once it is in the new.
        let confined = Confined { groups, memory };
        if let Err(error) = confined.make(pid, quota) {
            tracing::warn!(pid, %error, "a worker cannot be confined");
        }
        if let Some(before) = self.workers.insert(worker, confined) {
            self.remove(&before);
        }
    }

    /// A worker has ended: why, if that was because it took more memory than it had asked for.
    pub(crate) fn ended(&mut self, worker: ProcessId) -> Option<String> {
        let confined = self.workers.remove(&worker)?;
        let kills = confined.groups[0].kernel_kills().unwrap_or(0);
        self.remove(&confined);
        let memory = confined.memory.filter(|_| kills > 0)?;
        Some(format!(
            "it took more memory than it had asked for, memory={memory} ({}), which is enforced: \
             ask for more, or use less",
            show_bytes(memory)
        ))
    }

    fn remove(&mut self, confined: &Confined) {
        for group in &confined.groups {
            match fs::remove_dir(&group.folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    self.left.push(group.folder.clone());
                }
                _ => {}
            }
        }
    }

    /// Nothing of it stays. Everything in it has been killed.
    pub(crate) fn end(mut self) {
        while let Some((_, confined)) = self.workers.pop_first() {
            self.remove(&confined);
        }
        let own = self.groups.iter().map(|group| group.folder.clone());
        let mut left: Vec<PathBuf> = self.left.drain(..).chain(own).collect();
        // The last of their processes may be about to go.
        for _ in 0..100 {
            left.retain(|folder| fs::remove_dir(folder).is_err() && folder.exists());
            if left.is_empty() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        tracing::warn!(?left, "control groups are left");
    }
}

impl Confined {
    fn make(&self, pid: u32, quota: Option<u64>) -> io::Result<()> {
        let [memory, cpu] = &self.groups;
        for group in &self.groups {
            match fs::create_dir(&group.folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        if let Some(bytes) = self.memory {
            let file = memory.of(["memory.limit_in_bytes", "memory.max"]);
            write(&memory.folder.join(file), &bytes.to_string())?;
            // What is swapped out counts too, where there is any.
            let file = memory.of(["memory.memsw.limit_in_bytes", "memory.swap.max"]);
            let most = memory.of([bytes, 0]);
            let _ = write(&memory.folder.join(file), &most.to_string());
        }
        match (quota, cpu.version) {
            (Some(quota), Version::Two) => {
                write(&cpu.folder.join("cpu.max"), &format!("{quota} {PERIOD_US}"))?;
            }
            (Some(quota), Version::One) => {
                write(&cpu.folder.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
                write(&cpu.folder.join("cpu.cfs_quota_us"), &quota.to_string())?;
            }
            (None, _) => {}
        }
        for group in &self.groups {
            write(&group.folder.join("cgroup.procs"), &pid.to_string())?;
        }
        Ok(())
    }
}

/// Groups below this one may have the controller. Where processes are in it, as in one that was
/// delegated to them, the kernel wants them below it, too.
fn delegate(own: &ControlGroup, controller: &str) -> io::Result<()> {
    let file = own.folder.join("cgroup.subtree_control");
    let has_it = fs::read_to_string(&file)?.split_whitespace().any(|name| name == controller);
    if has_it {
        return Ok(());
    }
    match write(&file, &format!("+{controller}")) {
        Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
            let others = own.child("oxiray-others");
            let _ = fs::create_dir(&others.folder);
            for pid in fs::read_to_string(own.folder.join("cgroup.procs"))?.split_whitespace() {
                write(&others.folder.join("cgroup.procs"), pid)?;
            }
            write(&file, &format!("+{controller}"))
        }
        done => done,
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    // Files of the kernel are there; a tree of plain files, as in tests, makes them.
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?
        .write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enforcement(name: &str, version: Version) -> (PathBuf, Enforcement) {
        let root =
            std::env::temp_dir().join(format!("oxiray-enforce-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let folders = match version {
            Version::One => [root.join("memory"), root.join("cpu")],
            Version::Two => [root.clone(), root.clone()],
        };
        folders.iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
        let groups = folders.map(|folder| ControlGroup { version, folder });
        (root, Enforcement { groups, workers: BTreeMap::new(), last: 0, left: Vec::new() })
    }

    fn amounts() -> [Amount; 2] {
        let memory = Amount { name: "memory".into(), amount: 300 * UNIT };
        [Amount { name: "CPU".into(), amount: UNIT / 2 }, memory]
    }

    #[test]
    fn a_worker_is_put_into_a_group_with_its_limits() {
        let (root, mut enforcement) = enforcement("two", Version::Two);
        enforcement.confine(ProcessId(7), 42, &amounts());
        let read = |name: &str| fs::read_to_string(root.join("worker-42-1").join(name)).unwrap();
        assert_eq!(read("memory.max"), "300");
        assert_eq!(read("cpu.max"), "50000 100000");
        assert_eq!(read("cgroup.procs"), "42");
        fs::write(root.join("worker-42-1/memory.events"), "oom_kill 1\n").unwrap();
        let why = enforcement.ended(ProcessId(7)).unwrap();
        assert!(why.contains("memory=300"), "{why}");
        assert_eq!(enforcement.ended(ProcessId(7)), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn version_one_has_a_tree_for_each() {
        let (root, mut enforcement) = enforcement("one", Version::One);
        enforcement.confine(ProcessId(7), 42, &amounts());
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        assert_eq!(read("memory/worker-42-1/memory.limit_in_bytes"), "300");
        assert_eq!(read("cpu/worker-42-1/cpu.cfs_quota_us"), "50000");
        assert_eq!(read("cpu/worker-42-1/cgroup.procs"), "42");
        // The next lease asks for nothing: another group, without limits.
        enforcement.confine(ProcessId(7), 42, &[]);
        assert!(!root.join("memory/worker-42-2/memory.limit_in_bytes").exists());
        assert_eq!(enforcement.ended(ProcessId(7)), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn without_groups_one_sentence_says_so() {
        let why = Enforcement::begin(Path::new("/nowhere"), "s").unwrap_err().to_string();
        assert!(why.contains("cannot be enforced") && why.contains("/nowhere"), "{why}");
    }
}
