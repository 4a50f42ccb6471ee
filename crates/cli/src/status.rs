//! `oxiray status`: what the clusters and sessions of this user have, run, and wait for.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use oxiray_observe::find::{folder, nothing_runs};
use oxiray_observe::{Error, Session};
use oxiray_scheduler::{NODE_ID_LABEL, show_amount};
use oxiray_session::{Folder, Session as Directory, Started};
use oxiray_wire::cluster::{Job, NodeInfo, State};
use oxiray_wire::control::{ActorPhase, Amount, ClusterView};

use crate::commands::tool::Tool;
use crate::exit::{Failure, Result, end};
use crate::print::print;
use crate::state::tell;
use oxiray_words::show_bytes;

/// Which to show.
#[derive(Args, Default, Debug)]
pub struct Options {
    /// Only the cluster whose head is there, of which this machine has a node.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
}

/// Prints the clusters that this machine has nodes of, and the sessions of programs.
pub fn run(options: &Options) -> ExitCode {
    end(show_all(options))
}

fn show_all(options: &Options) -> Result<()> {
    let folder = folder()?;
    let here = folder.as_ref().map(Folder::started).unwrap_or_default();
    let clusters = folder.as_ref().map(|folder| folder.clusters(options.address.as_deref()));
    let mut text = String::new();
    let mut trouble = None;
    for started in clusters.unwrap_or_default() {
        let seen = Tool::connect(&started)
            .and_then(|mut tool| tool.see().map(|state| (tool.address().to_owned(), state)));
        match seen {
            Ok((address, state)) => {
                text.push_str(&show_cluster(&address, &state));
                let session = Directory::at(&started.session_dir).ok();
                if let Some(url) = session.and_then(|session| session.dashboard_url()) {
                    text.push_str(&format!("Dashboard {url}\n"));
                }
            }
            Err(error) => {
                let known =
                    trouble.replace(format!("{error}{}", remedy(folder.as_ref(), &started)));
                tell(known.as_slice());
            }
        }
    }
    if options.address.is_none() {
        let nodes: Vec<&PathBuf> = here.iter().map(|started| &started.session_dir).collect();
        let there = folder.as_ref().map(Folder::running).unwrap_or_default();
        let there = there.iter().map(|there| there.path().to_owned());
        for path in &there.collect::<Vec<_>>() {
            if trouble.is_none() && nodes.contains(&path) {
                continue;
            }
            // A session that ended meanwhile is none.
            if let Ok(view) = Session::open(path).and_then(|mut session| whole_view(&mut session)) {
                text.push_str(&show(path, &view));
            }
        }
    }
    print(&text)?;
    match (trouble, text.is_empty(), &options.address) {
        (Some(trouble), ..) => Err(Failure::Other(trouble)),
        (None, false, _) => Ok(()),
        (None, true, None) => Err(nothing_runs().into()),
        (None, true, Some(address)) => Err(Error::NoSuchSession(address.clone()).into()),
    }
}

/// What a session's node sees, with the actors that wait for another.
fn whole_view(session: &mut Session) -> oxiray_observe::Result<ClusterView> {
    let mut view = session.view()?;
    view.waiting.extend(session.actors_without_node()?);
    view.waiting.extend(session.groups_without_room()?);
    Ok(view)
}

fn remedy(folder: Option<&Folder>, started: &Started) -> &'static str {
    let runs = folder.is_some_and(|folder| started.control(folder).is_some());
    if started.is_head && !runs {
        ". It has ended: `oxiray start --head`, with the same --port, starts it again."
    } else {
        ""
    }
}

fn show_cluster(address: &str, state: &State) -> String {
    let (members, left): (Vec<&NodeInfo>, Vec<&NodeInfo>) =
        state.nodes.iter().partition(|node| node.left.is_empty());
    let runs = |job: &&Job| job.ended_ms == 0 && job.namespace != oxiray_observe::CLERKS;
    let jobs: Vec<&Job> = state.jobs.iter().filter(runs).collect();
    let in_phase = |phase: ActorPhase| {
        state.actors.iter().filter(|actor| actor.phase == i32::from(phase)).count()
    };
    let counts = [
        (in_phase(ActorPhase::Alive), "alive"),
        (in_phase(ActorPhase::Pending), "pending"),
        (in_phase(ActorPhase::Restarting), "restarting"),
        (in_phase(ActorPhase::Dead), "dead"),
    ];
    let some = counts.iter().filter(|(count, _)| *count > 0);
    let actors: Vec<String> = some.map(|(count, what)| format!("{count} {what}")).collect();
    let actors = if actors.is_empty() { "none".into() } else { actors.join(", ") };
    let mut text = format!("Cluster {address}\n");
    text.push_str(&format!("  nodes   {}\n", members.len()));
    text.push_str(&format!("  jobs    {}\n", jobs.len()));
    text.push_str(&format!("  actors  {actors}\n"));
    text.push_str(&format!("  state   in {}\n", state.store));
    if state.heads.len() > 1 {
        text.push_str(&format!("  standby {}\n", state.heads[1..].join(", ")));
    }
    if !state.store_trouble.is_empty() {
        text.push_str(&format!("  TROUBLE with the state: {}\n", state.store_trouble));
    }
    for node in &members {
        text.push_str(&show_node(node));
    }
    if !jobs.is_empty() {
        text.push_str("Jobs\n");
    }
    for job in jobs {
        text.push_str(&format!(
            "  {}  {}  (pid {}, namespace {})\n",
            hex(&job.id),
            job.entrypoint,
            job.pid,
            job.namespace
        ));
    }
    let waiting = members.iter().flat_map(|node| &node.waiting_for);
    let of_actors = state
        .actors
        .iter()
        .filter(|actor| actor.phase == i32::from(ActorPhase::Pending) && !actor.reason.is_empty());
    let of_actors = of_actors.map(|actor| format!("actor {}: {}", actor.class_name, actor.reason));
    let waiting: Vec<String> = waiting.cloned().chain(of_actors).collect();
    text.push_str(if waiting.is_empty() { "Nothing waits\n" } else { "Waiting\n" });
    for sentence in waiting {
        text.push_str(&format!("  {sentence}\n"));
    }
    if !left.is_empty() {
        text.push_str("Left lately\n");
    }
    for node in left {
        text.push_str(&format!(
            "  node {}  {} ({}): {}\n",
            short(&node.id),
            node.address,
            node.host,
            node.left
        ));
    }
    text
}

fn show_node(node: &NodeInfo) -> String {
    let head = if node.is_head { ", head" } else { "" };
    let mut text = format!(
        "Node {}  {}  ({}, oxirayd pid {}{head})\n",
        short(&node.id),
        node.address,
        node.host,
        node.pid
    );
    let mut rows = Vec::new();
    if node.is_draining() {
        rows.push(("DRAINING".into(), format!("{}; it takes no new work", node.draining)));
    }
    rows.extend(in_use_rows(&node.total, &node.available));
    rows.push((
        "object store".into(),
        format!("{} of {} in use", show_bytes(node.store_used), show_bytes(node.store_size)),
    ));
    let mut labels: Vec<String> = node
        .labels
        .iter()
        .filter(|(key, _)| *key != NODE_ID_LABEL)
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    labels.sort();
    if !labels.is_empty() {
        rows.push(("labels".into(), labels.join(", ")));
    }
    if node.waiting > 0 {
        rows.push(("waiting".into(), node.waiting.to_string()));
    }
    text.push_str(&table(&rows));
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Enough of an id to tell it from others.
fn short(id: &[u8]) -> String {
    hex(&id[..id.len().min(6)])
}

fn table(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("  {name:width$}  {value}\n")).collect()
}

/// What is in use of each resource. The store has its own row; the markers of
/// nodes are for programs.
fn in_use_rows(total: &[Amount], available: &[Amount]) -> Vec<(String, String)> {
    let for_people = |name: &str| name != "object_store_memory" && !name.starts_with("node:");
    let mut rows = Vec::new();
    for total in total.iter().filter(|total| for_people(&total.name)) {
        let free = available.iter().find(|free| free.name == total.name);
        let used = total.amount.saturating_sub(free.map_or(0, |free| free.amount));
        rows.push((total.name.clone(), in_use(&total.name, used, total.amount)));
    }
    rows
}

fn show(path: &Path, view: &ClusterView) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!("{name}  ({}, oxirayd pid {})\n", view.host, view.pid);
    let mut rows = in_use_rows(&view.total, &view.available);
    let mut store =
        format!("{} of {} in use", show_bytes(view.store_used), show_bytes(view.store_size));
    if view.on_disk > 0 {
        store.push_str(&format!(", {} on disk", show_bytes(view.on_disk)));
    }
    rows.push(("object store".into(), store));
    rows.push(("workers".into(), view.workers.to_string()));
    rows.push(("actors".into(), view.actors.to_string()));
    if let Some(url) = Directory::at(path).ok().and_then(|session| session.dashboard_url()) {
        rows.push(("dashboard".into(), url));
    }
    text.push_str(&table(&rows));
    match view.waiting.len() {
        0 => text.push_str("  nothing waits\n"),
        _ => text.push_str("  waiting:\n"),
    }
    for sentence in &view.waiting {
        text.push_str(&format!("    {sentence}\n"));
    }
    text
}

fn in_use(name: &str, used: u64, total: u64) -> String {
    format!("{} of {} in use", show_amount(name, used), show_amount(name, total))
}
