//! `oxiray logs`: log files of every node of the cluster.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use oxiray_observe::logs::{AT_ONCE, Wanted};
use oxiray_observe::task_output::Place;
use oxiray_observe::{Result, Session};

use super::{Which, print, tell};
use crate::exit::fail;
use crate::memory_watch::show_bytes;

/// How often a file that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Of what a task printed, that much of the end is shown.
const MOST_OF_TASK: u64 = 64 << 20;

/// Which log.
#[derive(Args, Debug)]
pub struct Options {
    /// The file, as `oxiray logs` lists it, or a part of its name. None: lists all files.
    file: Option<String>,
    /// Only the last lines; -1: all.
    #[arg(long, allow_negative_numbers = true, default_value_t = 1000)]
    tail: i64,
    /// Go on as the file grows.
    #[arg(long)]
    follow: bool,
    /// Of this node: its id, or the beginning of it, or its address.
    #[arg(long, value_name = "ID")]
    node_id: Option<String>,
    /// What this task printed.
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "actor_id", "pid", "node_id"])]
    task_id: Option<String>,
    /// What the worker printed that is, or was, this actor.
    #[arg(long, value_name = "ID")]
    actor_id: Option<String>,
    /// What this worker printed.
    #[arg(long)]
    pid: Option<u32>,
    /// With --task-id, --actor-id or --pid: its standard error instead of its output.
    #[arg(long)]
    err: bool,
    #[command(flatten)]
    which: Which,
}

/// Lists files, or prints one.
pub fn run(options: &Options) -> ExitCode {
    let mut session = match options.which.open() {
        Ok(session) => session,
        Err(error) => return fail(&error),
    };
    if let Some(task) = &options.task_id {
        return match show_task(&mut session, task, options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error),
        };
    }
    let wanted = Wanted {
        file: options.file.clone(),
        node_id: options.node_id.clone(),
        actor_id: options.actor_id.clone(),
        pid: options.pid,
        is_error: options.err,
    };
    let done = match session.find_log(&wanted) {
        Ok(None) => list(&mut session, options.node_id.as_deref()),
        Ok(Some((node, file))) => show(&mut session, &node, &file, options),
        Err(error) => Err(error),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn list(session: &mut Session, node_id: Option<&str>) -> Result<()> {
    let (files, notes) = session.log_files(node_id)?;
    tell(&notes);
    let mut node = "";
    let mut text = String::new();
    for file in &files {
        if file.node_id != node {
            node = &file.node_id;
            text.push_str(&format!("Node {node}\n"));
        }
        text.push_str(&format!("  {:>10}  {}\n", show_bytes(file.size), file.file));
    }
    print(&text);
    Ok(())
}

fn show(session: &mut Session, node: &str, file: &str, options: &Options) -> Result<()> {
    let mut offset = match u64::try_from(options.tail) {
        Ok(lines) => session.beginning_of_tail(node, file, lines)?,
        Err(_) => 0,
    };
    loop {
        let part = session.read_log(node, file, offset as i64, AT_ONCE)?;
        if part.size < offset {
            // It was begun anew.
            offset = 0;
        } else if !part.bytes.is_empty() {
            offset = part.next();
            if io::stdout().write_all(&part.bytes).and_then(|()| io::stdout().flush()).is_err() {
                return Ok(());
            }
        } else if options.follow {
            std::thread::sleep(LOOK_EVERY);
        } else {
            return Ok(());
        }
    }
}

fn show_task(session: &mut Session, task: &str, options: &Options) -> Result<()> {
    let read = session.task_output(task, options.err, &Place::default(), MOST_OF_TASK)?;
    let tail = u64::try_from(options.tail).map_or(0, |lines| tail_start(&read.bytes, lines));
    let log = read.place.log.clone();
    if read.bytes.is_empty() && !options.follow {
        let text = "it printed nothing itself; what programs printed that it started is in";
        tell(&[format!("{text} the log of its worker, {log}")]);
    } else if read.is_cut && tail == 0 {
        tell(&[format!("this is the end of it; all of it is in the log of its worker, {log}")]);
    }
    let (mut bytes, mut place) = (read.bytes, read.place);
    bytes.drain(..tail);
    while io::stdout().write_all(&bytes).and_then(|()| io::stdout().flush()).is_ok() {
        if !options.follow {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
        let more = session.task_output(task, options.err, &place, MOST_OF_TASK)?;
        (bytes, place) = (more.bytes, more.place);
    }
    Ok(())
}

/// Where the last lines begin.
fn tail_start(text: &[u8], lines: u64) -> usize {
    let ended = text.strip_suffix(b"\n").unwrap_or(text);
    let mut ends = ended.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    match usize::try_from(lines).unwrap_or(usize::MAX) {
        0 => text.len(),
        lines => ends.nth(lines - 1).map_or(0, |(at, _)| at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_found() {
        let tail = |lines| tail_start(b"a\nbb\n\nccc\n", lines);
        assert_eq!([0, 1, 2, 3, 4, 9].map(tail), [10, 6, 5, 2, 0, 0]);
        assert_eq!(tail_start(b"a\nb", 1), 2);
        assert_eq!(tail_start(b"", 1), 0);
    }
}
