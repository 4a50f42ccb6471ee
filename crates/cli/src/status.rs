//! `oxiray status`: what the sessions of this user have, run, and wait for.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use oxiray_scheduler::show_amounts;
use oxiray_wire::control::{Amount, ClusterView};

use crate::memory_watch::show_bytes;
use crate::observer::{NOTHING_RUNS, Observer, base, sessions};

/// Prints all sessions.
pub fn run() -> ExitCode {
    let base = base();
    let mut text = String::new();
    for path in sessions(&base) {
        // A session that ended meanwhile is none.
        let looked =
            Observer::connect(&path.join("node.sock")).and_then(|session| session.cluster());
        if let Ok(view) = looked {
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
    let mut store =
        format!("{} of {} in use", show_bytes(view.store_used), show_bytes(view.store_size));
    if view.on_disk > 0 {
        store.push_str(&format!(", {} on disk", show_bytes(view.on_disk)));
    }
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
