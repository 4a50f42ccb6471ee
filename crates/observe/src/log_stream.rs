//! A log and its older parts, read as one stream.
//!
//! A node renames the files of a log while they are read: `worker-7.out` becomes `worker-7.out.1`
//! when it is long enough, what that was becomes `.2`, and the last one goes. So a reader knows the
//! file that it is in by its identity, not by its name.
//!
//! 1. The number in a file's name only grows: it is looked for from the one that it had last.
//! 2. Only the file without a number grows: of any other, the end that is seen is the end.

use oxiray_wire::control::ReadFile;

use crate::error::{Error, Result};
use crate::logs::{AT_ONCE, LogPart};
use crate::session::Session;

/// Names that are asked for at once: as a rule there are three older parts.
const AT_A_TIME: u32 = 8;

/// More older parts than anybody keeps.
const MOST_PARTS: u32 = 1_000_000;

/// How often a file that moves on is looked for again.
const TRIES: usize = 10;

/// Says that a reader was too slow.
pub const LOST: &str =
    "lines are missing here: the log's older parts were removed before they could be read";

/// How far a log was read; by default: not yet.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct LogPlace {
    /// Which file of the log, by its identity; 0: the oldest that is kept.
    pub file: u64,
    /// The byte of that file to go on at.
    pub offset: u64,
    /// The number in the file's name when it was seen last; 0: it had none.
    pub number: u32,
}

/// What follows a place in a log.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct LogChunk {
    /// Bytes of one of its files; none: nothing follows yet.
    pub part: LogPart,
    /// Where to go on.
    pub place: LogPlace,
    /// Something is missing before it, see [`LOST`].
    pub is_after_loss: bool,
    /// Nothing will ever follow: an older part was asked for by its name.
    pub is_over: bool,
}

/// A file of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) number: u32,
    pub(crate) identity: u64,
    pub(crate) size: u64,
}

impl Part {
    fn at(self, offset: u64) -> LogPlace {
        LogPlace { file: self.identity, offset, number: self.number }
    }
}

/// A log, and which of its files are meant.
struct Named<'a> {
    log: &'a str,
    /// Only the one of this number; 0: all.
    only: u32,
}

impl<'a> Named<'a> {
    fn new(file: &'a str) -> Self {
        let numbered = file.rsplit_once('.').and_then(|(log, number)| {
            let only: u32 = number.parse().ok()?;
            let is_number = (1..=MOST_PARTS).contains(&only) && only.to_string() == number;
            is_number.then_some(Self { log, only })
        });
        numbered.unwrap_or(Self { log: file, only: 0 })
    }
}

/// Whether a file is an older part of a log, by its name.
pub(crate) fn is_older_part(file: &str) -> bool {
    Named::new(file).only > 0
}

/// What a file of a log is called.
pub(crate) fn part_name(log: &str, number: u32) -> String {
    if number == 0 { log.to_owned() } else { format!("{log}.{number}") }
}

fn path(log: &str, number: u32) -> String {
    format!("logs/{}", part_name(log, number))
}

impl Session {
    /// What follows a place in a log of a node, whatever its files are called by now. A log that
    /// does not exist yet is an empty one; an older part that is named is read alone.
    pub fn read_on(
        &mut self,
        node_id: &str,
        file: &str,
        after: &LogPlace,
        most: u32,
    ) -> Result<LogChunk> {
        self.at_node(node_id, |session, node| {
            let named = Named::new(file);
            match named.only {
                0 => session.follow(node, named.log, *after, most),
                number => session.read_alone(node, named.log, number, *after, most),
            }
        })
    }

    /// Where the last lines of a log begin: looks from its end, a piece at a time.
    pub fn tail_of_log(&mut self, node_id: &str, file: &str, lines: u64) -> Result<LogPlace> {
        self.at_node(node_id, |session, node| {
            let named = Named::new(file);
            let mut parts = session.log_parts(node, named.log, named.only)?;
            if named.only > 0 {
                parts.truncate(1);
            }
            session.tail_among(node, named.log, &parts, lines)
        })
    }

    fn follow(&mut self, node: u32, log: &str, after: LogPlace, most: u32) -> Result<LogChunk> {
        let mut chunk = LogChunk { place: after, ..LogChunk::default() };
        for _ in 0..TRIES {
            let part = self.read_file(node, log, &mut chunk.place, most)?;
            let is_newest = part.is_some() && chunk.place.number == 0;
            let is_kept = part.is_some();
            chunk.part = part.unwrap_or_default();
            if is_kept {
                chunk.place.offset = chunk.part.next();
            }
            // Nobody stays at the end of an older part: when that is gone, nothing would tell
            // whether something was lost with it.
            if !is_newest && chunk.part.next() >= chunk.part.size {
                let parts = self.log_parts(node, log, 0)?;
                let at = parts.iter().position(|part| part.identity == chunk.place.file);
                let next = match (at, parts.last()) {
                    // It was missed while it was renamed.
                    (Some(at), _) if !is_kept => {
                        chunk.place.number = parts[at].number;
                        continue;
                    }
                    // It is being renamed, and the next one is not there yet.
                    (Some(0), _) => return Ok(chunk),
                    (Some(at), _) => parts[at - 1],
                    (None, Some(oldest)) => *oldest,
                    (None, None) if is_kept || chunk.place.file == 0 => return Ok(chunk),
                    (None, None) => return Err(no_such_file(log)),
                };
                chunk.is_after_loss |= !is_kept && chunk.place.file != 0;
                chunk.place = next.at(0);
            }
            if is_newest || !chunk.part.bytes.is_empty() {
                break;
            }
        }
        Ok(chunk)
    }

    fn read_alone(
        &mut self,
        node: u32,
        log: &str,
        number: u32,
        after: LogPlace,
        most: u32,
    ) -> Result<LogChunk> {
        let mut place = after;
        let part = match after.file {
            0 => Some(self.read(node, &path(log, number), 0, most)?),
            _ => self.read_file(node, log, &mut place, most)?,
        };
        let is_after_loss = part.is_none();
        let part = part.unwrap_or_default();
        if place.file == 0 {
            place = LogPlace { file: part.identity, offset: 0, number };
        }
        place.offset += part.bytes.len() as u64;
        let is_over = part.bytes.is_empty();
        Ok(LogChunk { part, place, is_after_loss, is_over })
    }

    /// Bytes of the file of a place, whatever it is called by now; none: it is gone.
    fn read_file(
        &mut self,
        node: u32,
        log: &str,
        place: &mut LogPlace,
        most: u32,
    ) -> Result<Option<LogPart>> {
        if place.file == 0 {
            return Ok(None);
        }
        for _ in 0..TRIES {
            match self.read(node, &path(log, place.number), place.offset as i64, most) {
                Ok(part) if part.identity == place.file => return Ok(Some(part)),
                Ok(_) | Err(Error::NoSuchFile(_)) => {}
                Err(error) => return Err(error),
            }
            let parts = self.log_parts(node, log, place.number)?;
            match parts.iter().find(|part| part.identity == place.file) {
                Some(part) => place.number = part.number,
                None => return Ok(None),
            }
        }
        Err(Error::File(format!(
            "{log} is renamed faster than it can be read; RAY_ROTATION_MAX_BYTES makes its parts \
             longer"
        )))
    }

    /// The files of a log from a number on, newest first. They are asked for in this order: one that
    /// moves on meanwhile is found again at the next name, and none is missed.
    pub(crate) fn log_parts(&mut self, node: u32, log: &str, first: u32) -> Result<Vec<Part>> {
        let mut parts: Vec<Part> = Vec::new();
        let mut is_gap = false;
        for start in (first..).step_by(AT_A_TIME as usize) {
            let numbers = start..start.saturating_add(AT_A_TIME);
            let wanted = numbers.clone().map(|number| path(log, number));
            let wanted = wanted.map(|path| ReadFile { path, ..ReadFile::default() }).collect();
            for (number, part) in numbers.zip(self.observer.parts(node, wanted)?) {
                match part {
                    Ok(part) => {
                        is_gap = false;
                        parts.retain(|known| known.identity != part.identity);
                        parts.push(Part { number, identity: part.identity, size: part.size });
                    }
                    // One name may be free while files are renamed.
                    Err(Error::NoSuchFile(_)) if !is_gap => is_gap = true,
                    Err(Error::NoSuchFile(_)) => return Ok(parts),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(parts)
    }

    fn tail_among(&mut self, node: u32, log: &str, parts: &[Part], lines: u64) -> Result<LogPlace> {
        let mut start = parts.first().map(|newest| newest.at(newest.size)).unwrap_or_default();
        // The end of the last line begins none.
        let (mut left, mut is_end) = (lines, true);
        for part in parts.iter().filter(|_| lines > 0) {
            let mut end = part.size;
            while end > 0 {
                let mut place = part.at(end.saturating_sub(AT_ONCE.into()));
                let first = place.offset;
                let Some(read) = self.read_file(node, log, &mut place, (end - first) as u32)?
                else {
                    return Ok(start);
                };
                for (at, byte) in read.bytes.iter().enumerate().rev() {
                    if *byte == b'\n' && !is_end {
                        left -= 1;
                        if left == 0 {
                            return Ok(start);
                        }
                    }
                    is_end = false;
                    start = part.at(first + at as u64);
                }
                end = first;
            }
        }
        Ok(start)
    }
}

fn no_such_file(log: &str) -> Error {
    Error::NoSuchFile(format!("there is no file logs/{log}"))
}

#[cfg(test)]
mod tests;
