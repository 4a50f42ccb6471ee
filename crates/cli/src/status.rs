//! `oxiray status`: what the sessions of this user have, run, and wait for.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use oxiray_scheduler::show_amounts;
use oxiray_sys::packet;
use oxiray_wire::control::{
    Amount, ClusterView, FromNode, ProcessKind, Query, Register, ToNode, Topic, from_node, to_node,
};
use prost::Message;

use crate::memory_watch::show_bytes;

/// The code of "nothing runs", apart from that of errors.
const NOTHING_RUNS: u8 = 3;

/// Prints all sessions.
pub fn run() -> ExitCode {
    let base = base();
    let mut text = String::new();
    for path in sessions(&base) {
        // A session that ended meanwhile is none.
        if let Ok(view) = ask(&path.join("node.sock")) {
            text.push_str(&show(&path, &view));
        }
    }
    if text.is_empty() {
        eprintln!("No Oxiray session of yours is running (looked in {}).", base.display());
        return ExitCode::from(NOTHING_RUNS);
    }
    // Whoever reads may have enough before the end.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// Where sessions live; `OXIRAY_TMPDIR` overrides it.
fn base() -> PathBuf {
    match std::env::var_os("OXIRAY_TMPDIR") {
        Some(path) if !path.is_empty() => path.into(),
        _ => format!("/tmp/oxiray-{}", rustix::process::getuid().as_raw()).into(),
    }
}

fn sessions(base: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(base).into_iter().flatten().filter_map(Result::ok);
    let named = entries.filter(|e| e.file_name().to_string_lossy().starts_with("session_"));
    let mut paths: Vec<PathBuf> = named.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Looks at one session as an observer.
fn ask(socket: &Path) -> io::Result<ClusterView> {
    let socket = packet::connect_to(socket)?;
    let limit = Some(std::time::Duration::from_secs(2));
    rustix::net::sockopt::set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Recv, limit)?;
    let send =
        |body: to_node::Body| packet::send(&socket, &ToNode::from(body).encode_to_vec(), &[]);
    let mut register = Register { version: oxiray_wire::VERSION, ..Register::default() };
    register.set_kind(ProcessKind::Observer);
    send(to_node::Body::Register(register))?;
    let mut query = Query { request: 1, ..Query::default() };
    query.set_topic(Topic::Cluster);
    send(to_node::Body::Query(query))?;
    let mut buffer = vec![0; 256 * 1024];
    while let Some((len, _)) = packet::receive(&socket, &mut buffer)? {
        match FromNode::decode(&buffer[..len]).map(|message| message.body) {
            Ok(Some(from_node::Body::ClusterView(view))) => return Ok(view),
            Ok(Some(from_node::Body::Stopped(text))) => return Err(io::Error::other(text.text)),
            _ => {}
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

fn show(path: &Path, view: &ClusterView) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!("{name}  ({}, oxirayd pid {})\n", view.host, view.pid);
    let mut rows = Vec::new();
    // The store has its own row; the markers of nodes are for programs.
    let for_people = |name: &str| name != "object_store_memory" && !name.starts_with("node:");
    for total in view.total.iter().filter(|total| for_people(&total.name)) {
        let free = view.available.iter().find(|free| free.name == total.name);
        let used = total.amount.saturating_sub(free.map_or(0, |free| free.amount));
        rows.push((total.name.clone(), in_use(&total.name, used, total.amount)));
    }
    let store =
        format!("{} of {} in use", show_bytes(view.store_used), show_bytes(view.store_size));
    rows.push(("object store".into(), store));
    rows.push(("workers".into(), view.workers.to_string()));
    rows.push(("actors".into(), view.actors.to_string()));
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in rows {
        text.push_str(&format!("  {name:width$}  {value}\n"));
    }
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
    if name == "memory" {
        let unit = oxiray_wire::control::UNIT;
        return format!("{} of {} in use", show_bytes(used / unit), show_bytes(total / unit));
    }
    let number = |amount| {
        let shown = show_amounts(&[Amount { name: String::new(), amount }]);
        shown.trim_matches(['{', '}', ':', ' ']).to_owned()
    };
    format!("{} of {} in use", number(used), number(total))
}
