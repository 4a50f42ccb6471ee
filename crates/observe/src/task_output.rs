//! What one task printed. A node notes beside each part of a worker's log which task printed what
//! of it: lines `OFFSET TASK`, from which byte on it is whose, and first of all where the part
//! begins. Offsets go on from part to part.

use crate::error::{Error, Result};
use crate::log_stream::{Part, part_name};
use crate::logs::AT_ONCE;
use crate::resource::Resource;
use crate::session::Session;

/// How the name of a file with such notes ends.
const NOTES: &str = ".tasks";

/// A log that becomes an older part while it is read is read again, this often.
const TRIES: usize = 3;

/// Whose output is wanted.
#[derive(Clone, Default, Debug)]
pub struct WantedTask {
    /// Its id, or the beginning of it.
    pub id: String,
    /// Its standard error rather than its output.
    pub is_error: bool,
    /// One that has not begun, or is to begin again, has printed nothing yet; else it is refused.
    pub may_come: bool,
}

/// How far a task's output was read.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Place {
    /// Number of the node that ran it.
    pub node: u32,
    /// The log of the worker that ran it; another's is read from its beginning.
    pub log: String,
    /// The byte to go on at, of all that the worker has printed.
    pub next: u64,
}

/// What a task printed since some place.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TaskOutput {
    /// The bytes, lines of other tasks left out.
    pub bytes: Vec<u8>,
    /// Whether there was more, before them.
    pub is_cut: bool,
    /// Where to go on.
    pub place: Place,
}

/// Bytes of one file that a task printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Piece {
    /// Of all that the worker has printed, the byte that the file begins with.
    file_start: u64,
    start: u64,
    end: u64,
}

/// Whether a file has notes about another.
pub(crate) fn is_notes(file: &str) -> bool {
    file.ends_with(NOTES)
}

impl Session {
    /// What a task printed after a place, and of more than `most` bytes the last. What programs
    /// printed that it started is in the log of its worker only.
    pub fn task_output(
        &mut self,
        wanted: &WantedTask,
        after: &Place,
        most: u64,
    ) -> Result<TaskOutput> {
        let id = &wanted.id;
        let row = self.get(Resource::Tasks, id)?.ok_or_else(|| {
            Error::BadQuery(format!("there is none with the id {id} among the tasks"))
        })?;
        let Some((pid, node_id)) = row["worker_pid"].as_u64().zip(row["node_id"].as_str()) else {
            if wanted.may_come {
                return Ok(TaskOutput { place: after.clone(), ..TaskOutput::default() });
            }
            let state = row["state"].as_str().unwrap_or("unknown");
            return Err(Error::BadQuery(format!("no worker has run it yet: it is {state}")));
        };
        let task = row["task_id"].as_str().unwrap_or(id);
        let nodes = self.members()?;
        let (node, _) = self.node_number(&nodes, node_id)?;
        let log = format!("worker-{pid}.{}", if wanted.is_error { "err" } else { "out" });
        let is_same = (after.node, &after.log) == (node, &log);
        let place = Place { node, log, next: if is_same { after.next } else { 0 } };
        let mut parts = self.log_parts(node, &place.log, 0)?;
        for _ in 1..TRIES {
            let output = self.output_among(&parts, task, &place, most);
            let now = self.log_parts(node, &place.log, 0)?;
            let files = |parts: &[Part]| -> Vec<_> {
                parts.iter().map(|part| (part.number, part.identity)).collect()
            };
            if files(&parts) == files(&now) {
                return output;
            }
            parts = now;
        }
        self.output_among(&parts, task, &place, most)
    }

    fn output_among(
        &mut self,
        parts: &[Part],
        task: &str,
        after: &Place,
        most: u64,
    ) -> Result<TaskOutput> {
        let node = after.node;
        let mut pieces = Vec::new();
        // The newest first: who has read on need not look at the older ones.
        for part in parts {
            let file = part_name(&after.log, part.number);
            let notes = match self.whole_text(node, &format!("logs/{file}{NOTES}")) {
                Ok(notes) => notes,
                Err(Error::NoSuchFile(_)) => continue,
                Err(error) => return Err(error),
            };
            let of_file = pieces_of(&notes, part.size, task).into_iter().rev();
            pieces.extend(of_file.map(|piece| (file.clone(), piece)));
            // Nothing tells where an earlier worker of the same number stopped.
            let has_all = |(file_start, _)| 0 < after.next && file_start <= after.next;
            if turns(&notes).next().is_some_and(has_all) {
                break;
            }
        }
        pieces.reverse();
        for (_, piece) in &mut pieces {
            piece.start = piece.start.max(after.next);
        }
        pieces.retain(|(_, piece)| piece.start < piece.end);
        let mut output = TaskOutput { place: after.clone(), ..TaskOutput::default() };
        let mut skip = pieces.iter().map(|(_, piece)| piece.end - piece.start).sum::<u64>();
        skip = skip.saturating_sub(most);
        output.is_cut = skip > 0;
        for (file, mut piece) in pieces {
            let skipped = skip.min(piece.end - piece.start);
            skip -= skipped;
            piece.start += skipped;
            self.add_piece(node, &format!("logs/{file}"), piece, &mut output.bytes)?;
            output.place.next = piece.end;
        }
        Ok(output)
    }

    fn add_piece(
        &mut self,
        node: u32,
        path: &str,
        piece: Piece,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let mut at = piece.start - piece.file_start;
        let end = piece.end - piece.file_start;
        while at < end {
            let most = (end - at).min(AT_ONCE.into()) as u32;
            let part = self.read(node, path, at as i64, most)?;
            if part.bytes.is_empty() {
                break;
            }
            at = part.next();
            bytes.extend(part.bytes);
        }
        Ok(())
    }

    fn whole_text(&mut self, node: u32, path: &str) -> Result<String> {
        let mut bytes = Vec::new();
        loop {
            let part = self.read(node, path, bytes.len() as i64, AT_ONCE)?;
            if part.bytes.is_empty() {
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            bytes.extend(part.bytes);
        }
    }
}

/// From which byte on it is whose.
fn turns(notes: &str) -> impl Iterator<Item = (u64, &str)> {
    // The last line may be half written.
    let lines = notes.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    lines
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(at, task)| Some((at.parse().ok()?, task)))
}

/// What a task printed of a file of that size.
fn pieces_of(notes: &str, size: u64, task: &str) -> Vec<Piece> {
    let turns: Vec<(u64, &str)> = turns(notes).collect();
    let Some((file_start, _)) = turns.first().copied() else { return Vec::new() };
    let file_end = file_start.saturating_add(size);
    let ends = turns.iter().skip(1).map(|(at, _)| *at).chain([file_end]);
    turns
        .iter()
        .zip(ends)
        .filter(|((_, whose), _)| *whose == task)
        .map(|((start, _), end)| Piece { file_start, start: *start, end: end.min(file_end) })
        .filter(|piece| file_start <= piece.start && piece.start < piece.end)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(notes: &str, size: u64, task: &str) -> Vec<(u64, u64)> {
        let pieces = pieces_of(notes, size, task);
        pieces.iter().map(|piece| (piece.start, piece.end)).collect()
    }

    #[test]
    fn a_task_has_what_is_between_its_turn_and_the_next() {
        let notes = "100 -\n103 aa\n110 bb\n112 aa\n120 -\n125 cc\n140 d";
        assert_eq!(ranges(notes, 30, "aa"), [(103, 110), (112, 120)]);
        assert_eq!(ranges(notes, 30, "cc"), [(125, 130)]);
        assert_eq!(ranges(notes, 15, "aa"), [(103, 110), (112, 115)], "what is not yet written");
        assert_eq!(ranges(notes, 15, "cc"), []);
        assert_eq!(ranges(notes, 30, "d"), []);
        assert_eq!(pieces_of(notes, 30, "cc")[0].file_start, 100);
    }

    #[test]
    fn notes_that_make_no_sense_say_nothing() {
        assert_eq!(ranges("", 30, "aa"), []);
        assert_eq!(ranges("nonsense\n-1 aa\n", 30, "aa"), []);
        assert_eq!(ranges("50 bb\n10 aa\n", 30, "aa"), [], "before the part");
        assert_eq!(ranges(&format!("{} aa\n", u64::MAX), 30, "aa"), []);
    }
}
