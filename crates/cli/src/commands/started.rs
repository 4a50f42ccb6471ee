//! The nodes that `oxiray start` has started on this machine: a file each.
//!
//! `<base>/started/<session>` has a line `key=value` for each field, for its
//! owner alone. Python's `_address.py` reads the same files. One whose
//! processes are all gone is removed by whoever meets it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use oxiray_session::{Session, make_private, write_private};

use crate::commands::process::Process;

/// A node of this machine.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Started {
    /// Where the control service is reached.
    pub(crate) address: String,
    /// Where the node is reached.
    pub(crate) node_address: String,
    /// Twenty-eight bytes in hexadecimal.
    pub(crate) node_id: String,
    /// The node's directory, with its socket.
    pub(crate) session_dir: PathBuf,
    /// The node service.
    pub(crate) node: Option<Process>,
    /// The control service, on the head machine.
    pub(crate) control: Option<Process>,
    /// It was started as the head.
    pub(crate) is_head: bool,
    /// File of the cluster's tokens; empty: it is an insecure one.
    pub(crate) keyring: PathBuf,
    /// Where the control service keeps its state.
    pub(crate) store: String,
    /// The directory of the cluster on this machine.
    pub(crate) home: PathBuf,
    /// The state goes with the cluster: nobody asked for it to be elsewhere.
    pub(crate) owns_store: bool,
}

impl Started {
    pub(crate) fn node_runs(&self) -> bool {
        self.node.is_some_and(|process| process.is_alive())
    }

    pub(crate) fn control_runs(&self) -> bool {
        self.control.is_some_and(|process| process.is_alive())
    }

    /// The name of its file.
    pub(crate) fn name(&self) -> String {
        self.session_dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// All lines of the file.
    pub(crate) fn text(&self) -> String {
        let process = |process: Option<Process>| process.map_or(String::new(), |p| p.to_string());
        let path = |path: &Path| path.display().to_string();
        let flag = |flag: bool| String::from(if flag { "1" } else { "" });
        let fields = [
            ("address", self.address.clone()),
            ("node_address", self.node_address.clone()),
            ("node_id", self.node_id.clone()),
            ("session_dir", path(&self.session_dir)),
            ("node_pid", process(self.node)),
            ("control_pid", process(self.control)),
            ("is_head", flag(self.is_head)),
            ("keyring", path(&self.keyring)),
            ("store", self.store.clone()),
            ("home", path(&self.home)),
            ("owns_store", flag(self.owns_store)),
        ];
        fields.iter().map(|(key, value)| format!("{key}={value}\n")).collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let fields: BTreeMap<&str, &str> = pairs.collect();
        let field = |name: &str| fields.get(name).copied().unwrap_or_default();
        let parsed = Self {
            address: field("address").into(),
            node_address: field("node_address").into(),
            node_id: field("node_id").into(),
            session_dir: field("session_dir").into(),
            node: field("node_pid").parse().ok(),
            control: field("control_pid").parse().ok(),
            is_head: !field("is_head").is_empty(),
            keyring: field("keyring").into(),
            store: field("store").into(),
            home: field("home").into(),
            owns_store: !field("owns_store").is_empty(),
        };
        let whole = !parsed.address.is_empty() && parsed.session_dir.is_absolute();
        whole.then_some(parsed)
    }

    /// Writes the file, at once or not at all.
    pub(crate) fn save(&self, base: &Path) -> io::Result<()> {
        let folder = base.join("started");
        make_private(&folder)?;
        let draft = folder.join(format!(".{}.{}", self.name(), std::process::id()));
        write_private(&draft, self.text().as_bytes())?;
        fs::rename(&draft, folder.join(self.name()))
    }

    /// Removes the file, and what is left of the node's directory.
    pub(crate) fn forget(&self, base: &Path) {
        let folder = base.join("started");
        let _ = fs::remove_file(folder.join(self.name()));
        // Unless there are others.
        let _ = fs::remove_dir(&folder);
        // There only if the node service could not clean up: it was killed, or crashed.
        if let Ok(session) = Session::left_by(&self.session_dir) {
            session.keep_logs_and_remove();
        }
    }
}

/// Those that run, the latest last. What is left of others is removed.
pub(crate) fn all(base: &Path) -> Vec<Started> {
    let mut found = Vec::new();
    for entry in fs::read_dir(base.join("started")).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        let Ok(written) = entry.metadata().and_then(|metadata| metadata.modified()) else {
            continue;
        };
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        match fs::read_to_string(&path).ok().as_deref().and_then(Started::parse) {
            Some(started) if started.node_runs() || started.control_runs() => {
                found.push((written, started));
            }
            Some(started) => started.forget(base),
            None => _ = fs::remove_file(&path),
        }
    }
    found.sort_by_key(|(written, _)| *written);
    found.into_iter().map(|(_, started)| started).collect()
}

/// One node for each cluster, or for the one at `address`; heads rather than others.
pub(crate) fn clusters(base: &Path, address: Option<&str>) -> Vec<Started> {
    let mut chosen: BTreeMap<String, Started> = BTreeMap::new();
    for started in all(base) {
        if address.is_some_and(|address| address != started.address) {
            continue;
        }
        let known = chosen.get(&started.address);
        if known.is_none_or(|known| started.is_head && !known.is_head) {
            chosen.insert(started.address.clone(), started);
        }
    }
    chosen.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn base() -> PathBuf {
        std::env::temp_dir().join(format!("oxiray-started-{}", std::process::id()))
    }

    #[test]
    fn a_node_is_found_until_its_processes_end() {
        let base = base();
        let session_dir = base.join("session_a");
        make_private(&session_dir.join("logs")).unwrap();
        make_private(&session_dir).unwrap();
        let started = Started {
            address: "1.2.3.4:6379".into(),
            node_address: "1.2.3.4:40000".into(),
            session_dir: session_dir.clone(),
            node: Process::of(std::process::id()),
            is_head: true,
            store: "/x=y".into(),
            ..Started::default()
        };
        started.save(&base).unwrap();
        assert_eq!(Started::parse(&started.text()), Some(started.clone()));
        assert_eq!(all(&base), std::slice::from_ref(&started));
        assert_eq!(clusters(&base, Some("1.2.3.4:6379")).len(), 1);
        assert_eq!(clusters(&base, Some("1.2.3.4:1")), []);
        let mode = fs::metadata(base.join("started/session_a")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);

        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = Process::of(child.id());
        child.wait().unwrap();
        Started { node: gone, ..started }.save(&base).unwrap();
        assert_eq!(all(&base), []);
        assert!(!session_dir.exists() && !base.join("started").exists());
        fs::remove_dir_all(&base).unwrap();
    }
}
