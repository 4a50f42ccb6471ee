//! The commands that show what there is: `oxiray list`, `get`, `summary`, `logs`, `stack`,
//! `timeline`.
//!
//! - [`list`], [`get`], [`summary`]: rows of tasks, actors, objects, nodes, workers, jobs, placement groups
//! - [`logs`]: log files of every node
//! - [`stack`]: what workers do right now
//! - [`timeline`]: what ran when
//! - `show`: rows as a table, as JSON, as YAML

pub mod get;
pub mod list;
pub mod logs;
pub(crate) mod show;
pub mod stack;
pub mod summary;
pub mod timeline;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use oxiray_observe::find::folder;
use oxiray_observe::{Result, Session};
use oxiray_session::Folder;

use crate::print::remark;

/// Which session is meant.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Which {
    /// The session: where the head of its cluster is, or its name, or its directory; `last` is the
    /// one that ended last. The newest that runs, if there are several; what OXIRAY_ADDRESS or
    /// RAY_ADDRESS says, unless given.
    #[arg(long, visible_alias = "session", value_name = "ADDRESS")]
    address: Option<String>,
}

/// Which session alone is meant, where all are unless it is said.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Only {
    /// Only this session: where the head of its cluster is, or its name, or its directory. All of
    /// this machine, unless given here or by OXIRAY_ADDRESS or RAY_ADDRESS.
    #[arg(long, alias = "session", value_name = "ADDRESS")]
    address: Option<String>,
}

/// By the argument, else by the environment.
fn told(argument: &Option<String>) -> Option<String> {
    argument.clone().or_else(|| oxiray_settings::ADDRESS.text())
}

impl Only {
    /// Connects to the one that is meant; none: all are.
    pub(crate) fn open(&self) -> Result<Option<Session>> {
        told(&self.address).map(|address| Session::find(Some(&address))).transpose()
    }
}

impl Which {
    /// Connects; where others run beside the newest, says so.
    pub(crate) fn open(&self) -> Result<Session> {
        let address = told(&self.address);
        let session = Session::find(address.as_deref())?;
        if session.has_ended() {
            let name = session.dir().file_name().unwrap_or_default().to_string_lossy();
            tell(&[format!("{name} has ended: this is what it left")]);
        }
        if address.is_none() {
            let others = folder()?.map_or(0, |folder| others(&folder, &session));
            if others > 0 {
                let name = session.dir().file_name().unwrap_or_default().to_string_lossy();
                tell(&[format!("this is {name}; --address shows {others} other(s)")]);
            }
        }
        Ok(session)
    }
}

/// How many sessions and clusters run beside this one. They are not asked: one that hangs would
/// hold this up.
fn others(folder: &Folder, session: &Session) -> usize {
    let nodes = folder.started().into_iter();
    let clusters: BTreeMap<PathBuf, String> =
        nodes.map(|node| (node.session_dir, node.address)).collect();
    let there = folder.running().into_iter().map(|there| there.path().to_owned());
    let running = there.filter(|path| path != session.dir());
    // Nodes of one cluster are one.
    let names = running.map(|path| match clusters.get(&path) {
        Some(address) => address.clone(),
        None => path.display().to_string(),
    });
    let others: BTreeSet<String> =
        names.filter(|name| Some(name.as_str()) != session.control()).collect();
    others.len()
}

/// Says what is missing.
pub(crate) fn tell(notes: &[String]) {
    notes.iter().for_each(|note| remark(&format!("oxiray: {note}")));
}
