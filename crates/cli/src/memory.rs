//! `oxiray memory`: what holds memory in the sessions of this user, and who holds it.

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use oxiray_ids::ProcessId;
use oxiray_observe::find::{folder, nothing_runs};
use oxiray_observe::templates::templates_of;
use oxiray_observe::{Activity, Held, Resource, Session, WorkerRow};
use oxiray_wire::control::{ClusterView, HeldObject};

use crate::exit::{Result, end};
use crate::print::{print, terminal_width};
use crate::state::Only;
use crate::table::{Kind, Table};
use oxiray_words::plural;
use oxiray_words::show_bytes;

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
    #[command(flatten)]
    only: Only,
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
    end(show_all(options))
}

fn show_all(options: &Options) -> Result<()> {
    let mut text = String::new();
    let found = match options.only.open()? {
        Some(session) => vec![session],
        // A session that ended meanwhile is none.
        None => {
            let there = folder()?.map(|folder| folder.running()).unwrap_or_default();
            there.iter().filter_map(|there| Session::open(there.path()).ok()).collect()
        }
    };
    for mut session in found {
        if let Ok((view, rows, silent)) = ask(&mut session) {
            let processes = session.workers().map(|(rows, _)| rows).unwrap_or_default();
            text.push_str(&show(session.dir(), &view, rows, &processes, silent, options));
        }
    }
    if text.is_empty() {
        return Err(nothing_runs().into());
    }
    print(&text)
}

/// Asks every process of a session. Also: whether one did not answer in time.
fn ask(session: &mut Session) -> Result<(ClusterView, Vec<Held>, bool)> {
    let view = session.view()?;
    let (held, missing) = session.held_here()?;
    Ok((view, held, !missing.is_empty()))
}

fn show(
    path: &Path,
    view: &ClusterView,
    mut rows: Vec<Held>,
    processes: &[WorkerRow],
    silent: bool,
    options: &Options,
) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!(
        "{name}  (oxirayd pid {})\n  object store  {} of {} in use by {}",
        view.pid,
        show_bytes(view.store_used),
        show_bytes(view.store_size),
        plural(view.store_objects - view.objects_on_disk.min(view.store_objects), "object"),
    );
    if view.spilled > 0 {
        text.push_str(&format!(
            "\n  on disk       {} in {}; {} written and {} read back so far",
            show_bytes(view.on_disk),
            plural(view.objects_on_disk, "object"),
            show_bytes(view.spilled),
            show_bytes(view.restored),
        ));
    }
    let templates = templates_of(view.pid);
    if templates.processes > 0 {
        text.push_str(&format!(
            "\n  templates     {} in {} that workers are forked from",
            show_bytes(templates.bytes),
            if templates.processes == 1 {
                "one process".to_owned()
            } else {
                format!("{} processes", templates.processes)
            },
        ));
    }
    text.push_str(&totals(&rows));
    text.push_str(&own_memory(processes));
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
    let owned = || rows.iter().filter(|row| row.object.owner == 0 && !row.object.id.is_empty());
    let line = |place: &&str| {
        let there = || owned().filter(|row| row.place().word() == *place);
        let bytes = show_bytes(there().map(|row| row.object.size).sum());
        let count = there().count() as u64;
        (count > 0).then(|| format!("\n  {place:<12}  {}, {bytes}", plural(count, "object")))
    };
    Resource::Objects.states().iter().filter_map(line).collect()
}

/// What processes have of their own, beside the store: a driver's queued tasks, above all.
fn own_memory(processes: &[WorkerRow]) -> String {
    let alive = || processes.iter().filter(|row| row.is_alive);
    let (drivers, workers): (Vec<_>, Vec<_>) =
        alive().partition(|row| row.activity == Activity::Driver);
    let mut text = String::new();
    for driver in drivers {
        let bytes = show_bytes(driver.rss.unwrap_or(0));
        text.push_str(&format!("\n  driver        {bytes} of its own (pid {})", driver.pid));
    }
    if !workers.is_empty() {
        let bytes = show_bytes(workers.iter().filter_map(|row| row.rss).sum());
        let count = plural(workers.len() as u64, "worker");
        text.push_str(&format!("\n  {:<12}  {bytes} of their own ({count})", "workers"));
    }
    text
}

fn table(rows: &[Held]) -> String {
    let columns = [
        ("PID", Kind::Figure),
        ("PROCESS", Kind::Figure),
        ("OBJECT", Kind::Id),
        ("SIZE", Kind::Figure),
        ("PLACE", Kind::Figure),
        ("OWNER", Kind::Figure),
        ("HELD BY", Kind::Text),
        ("CREATED AT", Kind::Text),
    ];
    let columns = columns.map(|(title, kind)| (title.to_owned(), kind)).to_vec();
    let line = |row: &Held| {
        vec![
            row.pid.to_string(),
            (if row.is_driver { "driver" } else { "worker" }).to_owned(),
            name(&row.object),
            row.size().map_or_else(|| "-".into(), show_bytes),
            row.place().word().to_owned(),
            owner(row),
            holders(&row.object),
            row.object.call_site.clone(),
        ]
    };
    let table = Table::new(columns, usize::MAX, terminal_width()).indented("  ");
    let (mut text, no_room) = table.text(rows.iter().map(line).collect());
    if !no_room.is_empty() {
        text.push_str(&format!("  (the terminal is too narrow for {})\n", no_room.join(", ")));
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
