//! Bytes that a worker printed, as lines with the name of who printed them.
//!
//! A line `\x1eoxiray-name:NAME` is the worker's own: it names who prints from
//! now on and is not part of the output. Text before it on the same line is a
//! line of its own. A line `\x1eoxiray-bar:STATE` is the worker's, too: a progress
//! bar's state, handed on as it is, between two lines whatever it came between.

/// Starts a line that sets the name.
const NAME_MARK: &[u8] = b"\x1eoxiray-name:";
/// Starts a line that is a progress bar's state.
pub(crate) const BAR_MARK: &str = "\x1eoxiray-bar:";
/// A longer line is cut into pieces of this length.
const LONGEST: usize = 64 * 1024;

/// Cuts one stream into lines. Holds at most one unfinished line.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    unfinished: Vec<u8>,
    name: String,
}

impl Lines {
    /// Takes bytes in; hands on the name and the text of each line that is whole.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&str, &str)) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.extend(&bytes[..end], &mut line);
            self.end_line(false, &mut line);
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes, &mut line);
    }

    /// Hands on what is left without an end.
    pub(crate) fn finish(&mut self, mut line: impl FnMut(&str, &str)) {
        if !self.unfinished.is_empty() {
            self.end_line(false, &mut line);
        }
    }

    fn extend(&mut self, mut bytes: &[u8], line: &mut impl FnMut(&str, &str)) {
        while self.unfinished.len() + bytes.len() > LONGEST {
            let room = LONGEST - self.unfinished.len();
            // Not within a character, if this is text at all.
            let start_of_character = |at: &usize| bytes.get(*at).is_none_or(|b| b & 0xc0 != 0x80);
            let cut = (room.saturating_sub(3)..=room).rev().find(start_of_character);
            let cut = cut.unwrap_or(room);
            self.unfinished.extend_from_slice(&bytes[..cut]);
            bytes = &bytes[cut..];
            self.end_line(true, line);
        }
        self.unfinished.extend_from_slice(bytes);
    }

    fn end_line(&mut self, cut: bool, line: &mut impl FnMut(&str, &str)) {
        let text = &self.unfinished[..];
        if !cut && let Some(at) = find(text, NAME_MARK) {
            if at > 0 {
                line(&self.name, &String::from_utf8_lossy(&text[..at]));
            }
            self.name = String::from_utf8_lossy(&text[at + NAME_MARK.len()..]).into_owned();
        } else if !cut && let Some(at) = find(text, BAR_MARK.as_bytes()) {
            line(&self.name, &String::from_utf8_lossy(&text[at..]));
            // The line that it came into goes on.
            return self.unfinished.truncate(at);
        } else {
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            line(&self.name, &String::from_utf8_lossy(text));
        }
        self.unfinished.clear();
    }
}

fn find(text: &[u8], mark: &[u8]) -> Option<usize> {
    text.windows(mark.len()).position(|window| window == mark)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        let mut add = |name: &str, text: &str| found.push((name.to_owned(), text.to_owned()));
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
    fn long_lines_are_cut_between_characters() {
        let text = "é".repeat(LONGEST);
        let found = collect(&[b"x", text.as_bytes()]);
        assert!(found.len() >= 2 && found.iter().all(|(_, piece)| piece.len() <= LONGEST));
        let whole: String = found.into_iter().map(|(_, piece)| piece).collect();
        assert_eq!(whole, format!("x{text}"));
    }

    #[test]
    fn what_is_not_text_is_shown_as_well_as_can_be() {
        assert_eq!(collect(&[b"a\xffb\r\n"]), [line("", "a\u{fffd}b")]);
    }

    proptest! {
        #[test]
        fn how_bytes_arrive_does_not_matter(
            text in "[ab\n\x1e:]{0,80}", cuts in prop::collection::vec(0..80usize, 0..6)
        ) {
            let text = text.replace(':', "\x1eoxiray-name:").replace('b', "\x1eoxiray-bar:");
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
