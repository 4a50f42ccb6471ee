//! The nodes that `oxiray start` has started on this machine: a file each.
//!
//! `started/SESSION` in the folder has a line `key=value` for each field. It says where to look,
//! and nothing more: that a node runs is said by who listens at its socket; whom to end, by the
//! kernel; what is removed is the file, and the session of that name in the folder (F-4).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use oxiray_sys::packet;

use crate::directory::Directory;
use crate::folder::{Folder, PREFIX};
use crate::service::Service;
use crate::session::{HEADS, SOCKET, Session};

const STARTED: &str = "started";
const CLUSTERS: &str = "clusters";
/// Where the control service listens in the cluster's directory.
const CONTROL_SOCKET: &str = "control.sock";

/// Makes the socket that a control service is known by, as long as it listens: nothing is said
/// there. One that an earlier service left is replaced.
pub fn listen_as_control(home: &Path) -> io::Result<OwnedFd> {
    let home = Directory::at(home)?;
    home.remove(CONTROL_SOCKET);
    packet::listen_at(&home, CONTROL_SOCKET)
}

/// A node of this machine.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Started {
    /// Where the control service is reached.
    pub address: String,
    /// Where the node is reached.
    pub node_address: String,
    /// Twenty-eight bytes in hexadecimal.
    pub node_id: String,
    /// The node's directory, with its socket.
    pub session_dir: PathBuf,
    /// The node service, as it said when it was started: number and start. For people.
    pub node_pid: String,
    /// The control service, on the head machine. For people.
    pub control_pid: String,
    /// It was started as the head, or as one that waits to be: it has a control service.
    pub is_head: bool,
    /// As one that waits to be.
    pub is_standby: bool,
    /// File of the cluster's tokens; empty: it is an insecure one.
    pub keyring: PathBuf,
    /// Where the control service keeps its state.
    pub store: String,
    /// The name of the cluster's directory on this machine, among those of the folder.
    pub cluster: String,
    /// The state goes with the cluster: nobody asked for it to be elsewhere.
    pub owns_store: bool,
}

impl Started {
    /// The node service, if it runs.
    pub fn node(&self) -> Option<Service> {
        Service::at(&Directory::at(&self.session_dir).ok()?, SOCKET).ok()?
    }

    /// Whether its node is between two lives: nobody listens, and yet the session is held.
    pub fn begins_again(&self) -> bool {
        Session::at(&self.session_dir).is_ok_and(|session| session.begins_again())
    }

    /// The control service, if this is the head and it runs.
    pub fn control(&self, folder: &Folder) -> Option<Service> {
        let home = folder.cluster(&self.cluster).ok().filter(|_| self.is_head)?;
        Service::at(&home, CONTROL_SOCKET).ok()?
    }

    /// Where control services of its cluster are, the one that reigns first as far as its node knows;
    /// the one by which it was started is always among them.
    pub fn heads(&self) -> Vec<String> {
        let text = Directory::at(&self.session_dir).and_then(|session| session.read(HEADS));
        let mut heads: Vec<String> = text.unwrap_or_default().lines().map(str::to_owned).collect();
        let given = self.address.split(',').map(str::to_owned);
        for address in given {
            if !heads.contains(&address) {
                heads.push(address);
            }
        }
        heads
    }

    /// The name of its file, and of its session.
    pub fn name(&self) -> String {
        self.session_dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// All lines of the file.
    pub fn text(&self) -> String {
        let path = |path: &Path| path.display().to_string();
        let flag = |flag: bool| String::from(if flag { "1" } else { "" });
        let fields = [
            ("address", self.address.clone()),
            ("node_address", self.node_address.clone()),
            ("node_id", self.node_id.clone()),
            ("session_dir", path(&self.session_dir)),
            ("node_pid", self.node_pid.clone()),
            ("control_pid", self.control_pid.clone()),
            ("is_head", flag(self.is_head)),
            ("is_standby", flag(self.is_standby)),
            ("keyring", path(&self.keyring)),
            ("store", self.store.clone()),
            ("cluster", self.cluster.clone()),
            ("owns_store", flag(self.owns_store)),
        ];
        fields.iter().map(|(key, value)| format!("{key}={value}\n")).collect()
    }

    /// None: it lacks what every one has.
    fn parse(text: &str) -> Option<Self> {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let fields: BTreeMap<&str, &str> = pairs.collect();
        let field = |name: &str| fields.get(name).copied().unwrap_or_default();
        let parsed = Self {
            address: field("address").into(),
            node_address: field("node_address").into(),
            node_id: field("node_id").into(),
            session_dir: field("session_dir").into(),
            node_pid: field("node_pid").into(),
            control_pid: field("control_pid").into(),
            is_head: !field("is_head").is_empty(),
            is_standby: !field("is_standby").is_empty(),
            keyring: field("keyring").into(),
            store: field("store").into(),
            cluster: field("cluster").into(),
            owns_store: !field("owns_store").is_empty(),
        };
        let whole = !parsed.address.is_empty() && parsed.session_dir.is_absolute();
        whole.then_some(parsed)
    }
}

impl Folder {
    /// Writes the file of a node, at once or not at all.
    pub fn save(&self, started: &Started) -> io::Result<()> {
        self.directory().open_or_make(STARTED)?.write(&started.name(), started.text().as_bytes())
    }

    /// The node of this name is another one from now on, in the same process and directory.
    pub(crate) fn began_again(&self, name: &str, node_id: &str, address: &str) -> io::Result<()> {
        let text = self.directory().open(STARTED)?.read(name)?;
        let Some(before) = Started::parse(&text) else {
            return Err(io::Error::other("its file is damaged"));
        };
        let (node_id, node_address) = (node_id.to_owned(), address.to_owned());
        self.save(&Started { node_id, node_address, ..before })
    }

    /// Removes the file of a node, and ends what is left of its session.
    pub fn forget(&self, name: &str) {
        if let Ok(files) = self.directory().open(STARTED) {
            files.remove(name);
            // Unless there are others.
            self.directory().remove_if_empty(STARTED);
        }
        if name.starts_with(PREFIX) {
            self.end_left(name);
        }
    }

    /// Nodes that were given up and have not joined again yet: programs may wait for them.
    pub fn beginning_again(&self) -> Vec<Started> {
        let Ok(files) = self.directory().open(STARTED) else {
            return Vec::new();
        };
        let names = files.names().into_iter().filter(|name| name.starts_with(PREFIX));
        let read = names.filter_map(|name| Some((Started::parse(&files.read(&name).ok()?)?, name)));
        // A file speaks of the session of its name, and of no other.
        let ours = read.filter(|(started, name)| started.name() == *name);
        ours.map(|(started, _)| started).filter(Started::begins_again).collect()
    }

    /// The nodes that run, the latest last, and those whose control service still does. What is
    /// left of others is removed.
    pub fn started(&self) -> Vec<Started> {
        let Ok(files) = self.directory().open(STARTED) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for name in files.names().into_iter().filter(|name| name.starts_with(PREFIX)) {
            let Ok(about) = files.about(&name) else {
                continue;
            };
            // A file speaks of the session of its name, and of no other.
            let started = files.read(&name).ok().as_deref().and_then(Started::parse);
            match started.filter(|started| started.name() == name) {
                Some(started) if started.node().or_else(|| started.control(self)).is_some() => {
                    found.push(((about.st_mtime, about.st_mtime_nsec), started));
                }
                // It may run where we cannot see it: on another machine, in another container.
                Some(started) if self.is_over(&started, &name) => self.forget(&name),
                Some(_) => {}
                None => _ = files.remove(&name),
            }
        }
        found.sort_by_key(|(written, _)| *written);
        found.into_iter().map(|(_, started)| started).collect()
    }

    /// The directory of a cluster on this machine.
    pub fn cluster(&self, name: &str) -> io::Result<Directory> {
        self.directory().open(CLUSTERS)?.open(name)
    }

    /// The directory of a cluster on this machine, made if there is none.
    pub fn make_cluster(&self, name: &str) -> io::Result<Directory> {
        self.directory().open_or_make(CLUSTERS)?.open_or_make(name)
    }

    /// The clusters of which no node is known to this machine, be it in another container.
    pub fn unused_clusters(&self) -> Vec<String> {
        let files = self.directory().open(STARTED);
        let texts = files
            .iter()
            .flat_map(|files| files.names().into_iter().filter_map(|name| files.read(&name).ok()));
        let used: Vec<String> =
            texts.filter_map(|text| Started::parse(&text)).map(|one| one.cluster).collect();
        let mut names = self.directory().open(CLUSTERS).map_or_else(|_| Vec::new(), |c| c.names());
        names.retain(|name| !used.contains(name));
        names
    }

    /// Removes the directory of a cluster on this machine.
    pub fn remove_cluster(&self, name: &str) {
        if let Ok(clusters) = self.directory().open(CLUSTERS) {
            clusters.remove(name);
            self.directory().remove_if_empty(CLUSTERS);
        }
    }

    /// One node for each cluster, or for the one at `address`; heads rather than others.
    pub fn clusters(&self, address: Option<&str>) -> Vec<Started> {
        let mut chosen: BTreeMap<String, Started> = BTreeMap::new();
        for started in self.started() {
            let is_meant = |address: &str| {
                address == started.address || started.heads().contains(&address.into())
            };
            if address.is_some_and(|address| !is_meant(address)) {
                continue;
            }
            let known = chosen.get(&started.address);
            if known.is_none_or(|known| started.is_head && !known.is_head) {
                chosen.insert(started.address.clone(), started);
            }
        }
        chosen.into_values().collect()
    }

    /// Whether nobody, here or elsewhere, lives in the session of a node.
    fn is_over(&self, started: &Started, name: &str) -> bool {
        let is_here = started.session_dir.parent() == Some(self.path());
        match Directory::at(&started.session_dir) {
            _ if is_here => self.end_left(name),
            Ok(elsewhere) => matches!(crate::Hold::alone(&elsewhere), Ok(Some(_))),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}
