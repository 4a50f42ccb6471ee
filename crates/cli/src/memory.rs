//! `oxiray memory`: what holds memory in the sessions of this user, and who holds it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use oxiray_ids::ProcessId;
use oxiray_observe::find::{base, sessions};
use oxiray_observe::{Held, Result, Session};
use oxiray_wire::control::{ClusterView, HeldObject, WhereHeld};

use crate::exit::NOTHING_RUNS;
use crate::memory_watch::show_bytes;

/// What to show, and in which order.
#[derive(Args, Debug)]
pub struct Options {
    /// What comes first.
    #[arg(long, value_enum, default_value = "size")]
    sort_by: Order,
    /// Rows of the table at most.
    #[arg(long, default_value_t = 200)]
    num_entries: usize,
    /// Only the totals.
    #[arg(long)]
    stats_only: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Order {
    /// The largest objects.
    Size,
    /// The process that holds them.
    Pid,
}

/// Prints what holds memory.
pub fn run(options: &Options) -> ExitCode {
    let base = base();
    let mut text = String::new();
    for path in sessions(&base) {
        // A session that ended meanwhile is none.
        if let Ok((view, rows, silent)) = ask(&path) {
            text.push_str(&show(&path, &view, rows, silent, options));
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

/// Asks every process of a session. Also: whether one did not answer in time.
fn ask(session: &Path) -> Result<(ClusterView, Vec<Held>, bool)> {
    let mut session = Session::open(session)?;
    let view = session.view()?;
    let (held, missing) = session.held_here()?;
    Ok((view, held, !missing.is_empty()))
}

fn show(
    path: &Path,
    view: &ClusterView,
    mut rows: Vec<Held>,
    silent: bool,
    options: &Options,
) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!(
        "{name}  (oxirayd pid {})\n  object store  {} of {} in use by {} objects",
        view.pid,
        show_bytes(view.store_used),
        show_bytes(view.store_size),
        view.store_objects - view.objects_on_disk.min(view.store_objects),
    );
    if view.spilled > 0 {
        text.push_str(&format!(
            "\n  on disk       {} in {} objects; {} written and {} read back so far",
            show_bytes(view.on_disk),
            view.objects_on_disk,
            show_bytes(view.spilled),
            show_bytes(view.restored),
        ));
    }
    text.push_str(&totals(&rows));
    if silent {
        text.push_str("\n  (not every process has answered in time)");
    }
    text.push('\n');
    if options.stats_only || rows.is_empty() {
        return text;
    }
    match options.sort_by {
        Order::Size => rows.sort_by_key(|row| std::cmp::Reverse(row.object.size)),
        Order::Pid => rows.sort_by_key(|row| (row.pid, std::cmp::Reverse(row.object.size))),
    }
    let hidden = rows.len().saturating_sub(options.num_entries);
    rows.truncate(options.num_entries);
    text.push('\n');
    text.push_str(&table(&rows));
    if hidden > 0 {
        text.push_str(&format!("  and {hidden} more (--num-entries shows more)\n"));
    }
    if rows.iter().all(|row| row.object.call_site.is_empty()) {
        text.push_str(
            "  Set RAY_record_ref_creation_sites=1 before init() to see where references were \
             created.\n",
        );
    }
    text
}

/// How much of what, in words.
fn totals(rows: &[Held]) -> String {
    let mut counted: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.object.owner == 0 && !row.object.id.is_empty()) {
        let (count, bytes) = counted.entry(place(&row.object)).or_default();
        *count += 1;
        *bytes += row.object.size;
    }
    let words = counted.iter().map(|(place, (count, bytes))| {
        format!("\n  {place:<12}  {count} objects, {}", show_bytes(*bytes))
    });
    words.collect()
}

fn place(object: &HeldObject) -> &'static str {
    match object.place() {
        WhereHeld::Pending => "pending",
        WhereHeld::Process => "in process",
        WhereHeld::Memory => "in store",
        WhereHeld::Disk => "on disk",
        WhereHeld::Failed => "failed",
    }
}

fn table(rows: &[Held]) -> String {
    let titles = ["PID", "PROCESS", "OBJECT", "SIZE", "WHERE", "OWNER", "HELD BY", "CREATED AT"];
    let mut lines = vec![titles.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(|row| {
        let object = &row.object;
        vec![
            row.pid.to_string(),
            (if row.is_driver { "driver" } else { "worker" }).to_owned(),
            name(object),
            if object.size == 0 { "?".into() } else { show_bytes(object.size) },
            place(object).to_owned(),
            owner(row),
            holders(object),
            object.call_site.clone(),
        ]
    }));
    let widths: Vec<usize> = (0..titles.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(&format!("  {}\n", line.trim_end()));
    }
    text
}

/// Whom an object belongs to. Processes of other nodes are not asked.
fn owner(row: &Held) -> String {
    let node = ProcessId(row.object.owner).node();
    match row.owner {
        Some(pid) => pid.to_string(),
        None if row.object.owner != 0 && node != row.node => format!("on node {node}"),
        None => "gone".into(),
    }
}

fn name(object: &HeldObject) -> String {
    if object.id.is_empty() {
        return "(no reference left)".into();
    }
    object.id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What counts on an object, as Ray calls it where Ray has a word.
fn holders(object: &HeldObject) -> String {
    let mut parts = Vec::new();
    let mut add = |count: u32, what: &str| {
        if count > 0 {
            parts.push(if count == 1 { what.to_owned() } else { format!("{what} x{count}") });
        }
    };
    // An actor's handle is an object whose index is zero.
    let is_handle = object.id.len() == 28 && object.id[24..] == [0; 4];
    add(object.local, if is_handle { "ACTOR_HANDLE" } else { "LOCAL_REFERENCE" });
    add(object.tasks, "USED_BY_PENDING_TASK");
    add(object.captured, "CAPTURED_IN_OBJECT");
    add(object.in_flight, "IN_FLIGHT");
    add(object.borrowers, "BORROWED");
    add(u32::from(object.pinned), "PINNED_IN_MEMORY");
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_a_process_here_or_on_another_node_or_gone() {
        let held = |by: u64, pid: Option<u32>| Held {
            node: 1,
            process: 1,
            pid: 10,
            is_driver: true,
            owner: pid,
            object: HeldObject { owner: by, ..HeldObject::default() },
        };
        assert_eq!(owner(&held(0, Some(10))), "10");
        assert_eq!(owner(&held(ProcessId::new(1, 5).0, Some(11))), "11");
        assert_eq!(owner(&held(ProcessId::new(1, 5).0, None)), "gone");
        assert_eq!(owner(&held(ProcessId::new(2, 5).0, None)), "on node 2");
    }
}
