//! `oxiray logs`: log files of every node of the cluster.

use std::io;
use std::process::ExitCode;

use clap::Args;
use oxiray_observe::Session;
use oxiray_observe::log_stream::{LOST, LogPlace};
use oxiray_observe::logs::{AT_ONCE, Wanted};
use oxiray_observe::task_output::{Place, WantedTask};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Which, tell};
use crate::exit::{Failure, Result, end};
use crate::print::{print, print_bytes};
use oxiray_words::show_bytes;

/// How often a file that is followed is looked at.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Of what a task printed, that much of the end is shown.
const MOST_OF_TASK: u64 = 64 << 20;

/// Which log.
#[derive(Args, Debug)]
pub struct Options {
    /// The file, as `oxiray logs` lists it, or a part of its name. None: lists all files.
    file: Option<String>,
    /// Only the last lines; -1: all that is kept.
    #[arg(long, allow_negative_numbers = true, default_value = "1000", value_parser = lines)]
    tail: i64,
    /// Go on as the log grows, until the session ends.
    #[arg(long)]
    follow: bool,
    /// Of this node: its id, or the beginning of it, or its address.
    #[arg(long, value_name = "ID")]
    node_id: Option<String>,
    /// What this task printed.
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "actor_id", "pid", "node_id"])]
    task_id: Option<String>,
    /// What the worker printed that is, or was, this actor.
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "pid"])]
    actor_id: Option<String>,
    /// What this worker printed.
    #[arg(long, conflicts_with = "file")]
    pid: Option<u32>,
    /// With --task-id, --actor-id or --pid: its standard error instead of its output.
    #[arg(long)]
    err: bool,
    #[command(flatten)]
    which: Which,
}

fn lines(text: &str) -> std::result::Result<i64, &'static str> {
    let lines = text.parse().ok().filter(|lines| *lines >= -1);
    lines.ok_or("it is a number of lines, or -1 for all")
}

/// Lists files, or prints one.
pub fn run(options: &Options) -> ExitCode {
    end(logs(options))
}

fn logs(options: &Options) -> Result<()> {
    let mut session = options.which.open()?;
    let done = match &options.task_id {
        Some(task) => show_task(&mut session, task, options),
        None => find(&mut session, options),
    };
    match done {
        Err(Failure::Unseen(error)) if options.follow && error.is_end_of_session() => {
            tell(&["the session has ended, and its logs with it".to_owned()]);
            Ok(())
        }
        done => done,
    }
}

fn find(session: &mut Session, options: &Options) -> Result<()> {
    let wanted = Wanted {
        file: options.file.clone(),
        node_id: options.node_id.clone(),
        actor_id: options.actor_id.clone(),
        pid: options.pid,
        is_error: options.err,
        may_come: options.follow,
    };
    match session.find_log(&wanted)? {
        Some((node, file)) => show(session, &node, &file, options),
        None if options.follow => {
            let text = "--follow needs to know which log: `oxiray logs` lists all";
            Err(Failure::Other(text.to_owned()))
        }
        None => list(session, options.node_id.as_deref()),
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
    print(&text)
}

fn show(session: &mut Session, node: &str, file: &str, options: &Options) -> Result<()> {
    let mut place = match u64::try_from(options.tail) {
        Ok(lines) => session.tail_of_log(node, file, lines)?,
        Err(_) => LogPlace::default(),
    };
    loop {
        let chunk = session.read_on(node, file, &place, AT_ONCE)?;
        place = chunk.place;
        if chunk.is_after_loss {
            tell(&[LOST.to_owned()]);
        }
        let is_end = chunk.part.bytes.is_empty();
        let is_over = is_end && (chunk.is_over || !options.follow);
        print_bytes(&chunk.part.bytes)?;
        if is_over || (is_end && !is_read_until_next_look()) {
            return Ok(());
        }
    }
}

/// Waits. Who reads what this prints may leave meanwhile, when nothing is printed that would tell.
fn is_read_until_next_look() -> bool {
    let stdout = io::stdout();
    let mut reader = [PollFd::new(&stdout, PollFlags::empty())];
    matches!(poll(&mut reader, Some(&LOOK_EVERY)), Ok(0) | Err(rustix::io::Errno::INTR))
}

fn show_task(session: &mut Session, task: &str, options: &Options) -> Result<()> {
    let wanted =
        WantedTask { id: task.to_owned(), is_error: options.err, may_come: options.follow };
    let read = session.task_output(&wanted, &Place::default(), MOST_OF_TASK)?;
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
    loop {
        print_bytes(&bytes)?;
        if !options.follow || !is_read_until_next_look() {
            return Ok(());
        }
        let more = session.task_output(&wanted, &place, MOST_OF_TASK)?;
        (bytes, place) = (more.bytes, more.place);
    }
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
