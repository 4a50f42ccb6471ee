//! Bytes that a worker printed, as lines with who printed them.
//!
//! Lines that begin with `\x1eoxiray-` are the worker's own and no part of the output:
//! - `name:NAME` names who prints from now on. Text before it on the same line is a line of
//!   its own.
//! - `task:ID` says which task prints from now on; without an ID none does. A line that it
//!   comes into goes on, and is of the task that began it.
//! - `bar:STATE` is a progress bar's state, handed on as it is, between two lines whatever
//!   it came between.

/// How all of them start.
const MARK: &[u8] = b"\x1eoxiray-";
/// Starts a line that sets the name.
const NAME_MARK: &[u8] = b"\x1eoxiray-name:";
/// Starts a line that sets the task.
const TASK_MARK: &[u8] = b"\x1eoxiray-task:";
/// Starts a line that is a progress bar's state.
pub(crate) const BAR_MARK: &str = "\x1eoxiray-bar:";
/// A longer line is cut into pieces of this length.
const LONGEST: usize = 64 * 1024;

/// A line, and who printed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// Of the task or the actor's class.
    pub(crate) name: &'a str,
    /// The id of the task that began it; empty: none did.
    pub(crate) task: &'a str,
    pub(crate) text: &'a str,
}

/// Cuts one stream into lines. Holds at most one unfinished line.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    unfinished: Vec<u8>,
    name: String,
    task: String,
    /// The task that began the unfinished line, if another has its turn since.
    begun_by: Option<String>,
}

impl Lines {
    /// Takes bytes in; hands on each line that is whole.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(Line<'_>)) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.extend(&bytes[..end], &mut line);
            self.end_line(false, &mut line);
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes, &mut line);
    }

    /// Hands on what is left without an end.
    pub(crate) fn finish(&mut self, mut line: impl FnMut(Line<'_>)) {
        if !self.unfinished.is_empty() {
            self.end_line(false, &mut line);
        }
    }

    fn extend(&mut self, mut bytes: &[u8], line: &mut impl FnMut(Line<'_>)) {
        while self.unfinished.len() + bytes.len() > LONGEST {
            let room = LONGEST - self.unfinished.len();
            // Not within a character, if this is text at all.
            let start_of_character = |at: &usize| bytes.get(*at).is_none_or(|b| b & 0xc0 != 0x80);
            let cut = (room.saturating_sub(3)..=room).rev().find(start_of_character);
            let cut = cut.unwrap_or(room);
            self.unfinished.extend_from_slice(&bytes[..cut]);
            bytes = &bytes[cut..];
            // A mark that has begun is not part of the line.
            let mark = find(&self.unfinished, MARK).filter(|&at| at > 0);
            let begun = mark.map(|at| self.unfinished.split_off(at)).unwrap_or_default();
            self.end_line(true, line);
            self.unfinished = begun;
        }
        self.unfinished.extend_from_slice(bytes);
    }

    fn end_line(&mut self, cut: bool, line: &mut impl FnMut(Line<'_>)) {
        let text = &self.unfinished[..];
        let task = self.begun_by.as_ref().unwrap_or(&self.task);
        let mut say = |text: &[u8]| {
            line(Line { name: &self.name, task, text: &String::from_utf8_lossy(text) });
        };
        if !cut && let Some(at) = find(text, NAME_MARK) {
            if at > 0 {
                say(&text[..at]);
            }
            self.name = String::from_utf8_lossy(&text[at + NAME_MARK.len()..]).into_owned();
        } else if !cut && let Some(at) = find(text, TASK_MARK) {
            let next = String::from_utf8_lossy(&text[at + TASK_MARK.len()..]).into_owned();
            let before = std::mem::replace(&mut self.task, next);
            if at > 0 && self.begun_by.is_none() {
                self.begun_by = Some(before);
            }
            return self.unfinished.truncate(at);
        } else if !cut && let Some(at) = find(text, BAR_MARK.as_bytes()) {
            say(&text[at..]);
            // The line that it came into goes on.
            return self.unfinished.truncate(at);
        } else {
            say(text.strip_suffix(b"\r").unwrap_or(text));
        }
        self.unfinished.clear();
        if !cut {
            self.begun_by = None;
        }
    }
}

fn find(text: &[u8], mark: &[u8]) -> Option<usize> {
    let mut starts = text.iter().enumerate().filter(|(_, byte)| **byte == mark[0]);
    starts.find(|(at, _)| text[*at..].starts_with(mark)).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        let mut add = |line: Line<'_>| {
            let tag = if line.task.is_empty() { String::new() } else { format!("#{}", line.task) };
            found.push((format!("{}{tag}", line.name), line.text.to_owned()));
        };
        for piece in pieces {
            lines.push(piece, &mut add);
        }
        lines.finish(&mut add);
        found
    }

    fn line(name: &str, text: &str) -> (String, String) {
        (name.into(), text.into())
    }

    #[test]
    fn marks_set_the_name_and_are_not_output() {
        let found = collect(&[b"a\n\x1eoxiray-na", b"me:f\nb\n\nhalf\x1eoxiray-name:g\nrest"]);
        let expected =
            [line("", "a"), line("f", "b"), line("f", ""), line("f", "half"), line("g", "rest")];
        assert_eq!(found, expected);
    }

    #[test]
    fn bars_come_between_lines_and_cut_none() {
        let found = collect(&[b"ha\x1eoxiray-bar:{}\nlf\n\x1eoxiray-bar:1\n", b"end"]);
        let bar = |state: &str| line("", &format!("{BAR_MARK}{state}"));
        assert_eq!(found, [bar("{}"), line("", "half"), bar("1"), line("", "end")]);
    }

    #[test]
    fn a_line_is_of_the_task_that_began_it() {
        let found = collect(&[
            b"a\n\x1eoxiray-name:f\n\x1eoxiray-task:1\nb\n.\x1eoxiray-task:\n\x1eoxiray-task:2\n.\nc\n",
            b"\x1eoxiray-task:\nd\n\x1eoxiray-task:3\ne\x1eoxiray-task:\n",
        ]);
        let of_two = line("f#1", "..");
        let expected = [
            line("", "a"),
            line("f#1", "b"),
            of_two,
            line("f#2", "c"),
            line("f", "d"),
            line("f#3", "e"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let text = "é".repeat(LONGEST);
        let found = collect(&[b"x", text.as_bytes()]);
        assert!(found.len() >= 2 && found.iter().all(|(_, piece)| piece.len() <= LONGEST));
        let whole: String = found.into_iter().map(|(_, piece)| piece).collect();
        assert_eq!(whole, format!("x{text}"));
    }

    #[test]
    fn a_mark_is_not_cut() {
        let text = "x".repeat(LONGEST - 20);
        let found = collect(&[text.as_bytes(), b"\x1eoxiray-task:", b"0123456789abcdef\ny\n"]);
        assert_eq!(found, [line("", &text), line("#0123456789abcdef", "y")]);
        let odd = format!("{text}\x1eoxiray-name:{}\n", "n".repeat(2 * LONGEST));
        assert!(collect(&[odd.as_bytes()]).iter().all(|(_, piece)| piece.len() <= LONGEST));
    }

    #[test]
    fn what_is_not_text_is_shown_as_well_as_can_be() {
        assert_eq!(collect(&[b"a\xffb\r\n"]), [line("", "a\u{fffd}b")]);
    }

    proptest! {
        #[test]
        fn how_bytes_arrive_does_not_matter(
            text in "[abc\n\x1e:]{0,80}", cuts in prop::collection::vec(0..80usize, 0..6)
        ) {
            let text = text.replace(':', "\x1eoxiray-name:").replace('b', "\x1eoxiray-bar:");
            let text = text.replace('c', "\x1eoxiray-task:");
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|&cut| cut < bytes.len()).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut start = 0;
            for cut in cuts {
                pieces.push(&bytes[start..cut]);
                start = cut;
            }
            pieces.push(&bytes[start..]);
            prop_assert_eq!(collect(&pieces), collect(&[bytes]));
        }
    }
}
