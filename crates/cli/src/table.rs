//! Lines with columns, for people. There may be a million of them: columns are as wide as the
//! first lines need, and a later line that needs more is longer than the others.
//!
//! On a terminal that is too narrow, ids are shortened to what tells them apart, as git does, then
//! texts are cut, and then the last columns are left out. Figures are never cut. There the titles
//! are bold, and states have colours: green is well, red is not, yellow waits or was stopped.

use std::collections::BTreeSet;
use std::io::{self, Write};

/// Lines by which the widths are found.
const FIRST: usize = 1000;
/// Digits of an id that is shortened, at least.
const SHORTEST_ID: usize = 8;
/// What is left of a text that is cut, at least.
const SHORTEST_TEXT: usize = 8;
const BETWEEN: &str = "  ";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// What a column has, which is how it may be made narrower.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Id,
    Text,
    Figure,
}

/// See the module documentation.
pub(crate) struct Table {
    columns: Vec<(String, Kind)>,
    indent: &'static str,
    /// Characters of a cell at most.
    widest: usize,
    /// Characters of a line at most.
    room: Option<usize>,
    first: Vec<Vec<String>>,
    /// Of the columns that are shown, once it is known.
    widths: Option<Vec<usize>>,
    has_colours: bool,
}

impl Table {
    pub(crate) fn new(columns: Vec<(String, Kind)>, widest: usize, room: Option<usize>) -> Self {
        Self {
            columns,
            indent: "",
            widest,
            room,
            first: Vec::new(),
            widths: None,
            has_colours: false,
        }
    }

    pub(crate) fn coloured(mut self, has_colours: bool) -> Self {
        self.has_colours = has_colours;
        self
    }

    pub(crate) fn indented(mut self, indent: &'static str) -> Self {
        self.indent = indent;
        self
    }

    pub(crate) fn add(&mut self, cells: Vec<String>, out: &mut impl Write) -> io::Result<()> {
        if let Some(widths) = &self.widths {
            return self.write(&cells, widths, out);
        }
        self.first.push(cells);
        if self.first.len() == FIRST { self.begin(out) } else { Ok(()) }
    }

    /// Writes what is left. The titles of columns for which there was no room.
    pub(crate) fn finish(mut self, out: &mut impl Write) -> io::Result<Vec<String>> {
        if self.widths.is_none() {
            self.begin(out)?;
        }
        let shown = self.widths.as_ref().map_or(0, Vec::len);
        Ok(self.columns.split_off(shown).into_iter().map(|(title, _)| title).collect())
    }

    /// All of it at once, and the titles of columns for which there was no room.
    pub(crate) fn text(mut self, lines: Vec<Vec<String>>) -> (String, Vec<String>) {
        let mut text = Vec::new();
        // Memory takes whatever is written.
        for line in lines {
            let _ = self.add(line, &mut text);
        }
        let no_room = self.finish(&mut text).unwrap_or_default();
        (String::from_utf8_lossy(&text).into_owned(), no_room)
    }

    fn begin(&mut self, out: &mut impl Write) -> io::Result<()> {
        let widths = self.widths();
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| title.clone()).collect();
        self.write_as(&titles, &widths, |_| BOLD, out)?;
        for line in std::mem::take(&mut self.first) {
            self.write(&line, &widths, out)?;
        }
        self.widths = Some(widths);
        Ok(())
    }

    fn write(&self, cells: &[String], widths: &[usize], out: &mut impl Write) -> io::Result<()> {
        self.write_as(cells, widths, colour, out)
    }

    fn write_as(
        &self,
        cells: &[String],
        widths: &[usize],
        colour: impl Fn(&str) -> &'static str,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut line = String::from(self.indent);
        for ((cell, &width), (_, kind)) in cells.iter().zip(widths).zip(&self.columns) {
            if line.len() > self.indent.len() {
                line.push_str(BETWEEN);
            }
            // What is longer than the first ones is cut only where there is no room.
            let most = if self.room.is_some() { width } else { self.widest };
            let cell = cut(cell, most, *kind);
            let paint = if self.has_colours { colour(&cell) } else { "" };
            let end = if paint.is_empty() { "" } else { PLAIN };
            let gap = width.saturating_sub(cell.chars().count());
            line.push_str(&format!("{paint}{cell}{end}{:gap$}", ""));
        }
        writeln!(out, "{}", line.trim_end())
    }

    /// The width of each column that is shown.
    fn widths(&self) -> Vec<usize> {
        let column = |at: usize| self.first.iter().filter_map(move |line| line.get(at));
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|at| {
                let cells = column(at).map(|cell| cell.chars().count()).max().unwrap_or(0);
                cells.min(self.widest).max(self.columns[at].0.chars().count())
            })
            .collect();
        let Some(room) = self.room else {
            return widths;
        };
        let room = room.saturating_sub(self.indent.len());
        if taken(&widths) > room {
            for at in (0..widths.len()).filter(|&at| self.columns[at].1 == Kind::Id) {
                widths[at] = widths[at].min(distinct(column(at)).max(self.columns[at].0.len()));
            }
        }
        let least: Vec<usize> = self.columns.iter().zip(&widths).map(least).collect();
        // As many columns as fit at their narrowest, and then each as wide as it can be.
        while widths.len() > 2 && taken(&least[..widths.len()]) > room {
            widths.pop();
        }
        while taken(&widths) > room {
            let narrower = (0..widths.len()).filter(|&at| widths[at] > least[at]);
            match narrower.max_by_key(|&at| widths[at]) {
                Some(at) => widths[at] -= 1,
                None => break,
            }
        }
        widths
    }
}

/// What a cell is shown in: of a state, how things stand.
fn colour(cell: &str) -> &'static str {
    match cell {
        "FINISHED" | "RUNNING" | "ALIVE" | "SUCCEEDED" | "CREATED" => "\x1b[32m",
        "FAILED" | "DEAD" | "INFEASIBLE" => "\x1b[31m",
        "CANCELLED" | "RESTARTING" | "STOPPED" | "REMOVED" => "\x1b[33m",
        _ if cell.starts_with("PENDING") => "\x1b[33m",
        _ => "",
    }
}

/// How narrow a column may become that would be so wide.
fn least(((title, kind), &width): (&(String, Kind), &usize)) -> usize {
    match kind {
        Kind::Text => width.min(title.chars().count().max(SHORTEST_TEXT)),
        Kind::Id | Kind::Figure => width,
    }
}

fn taken(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + BETWEEN.len() * widths.len().saturating_sub(1)
}

/// How many digits tell these ids apart.
fn distinct<'a>(ids: impl Iterator<Item = &'a String>) -> usize {
    let ids: BTreeSet<&str> = ids.map(String::as_str).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    let same = |pair: &[&str]| {
        let pairs = pair[0].bytes().zip(pair[1].bytes());
        pairs.take_while(|(a, b)| a == b).count()
    };
    // Sorted: the nearest to each is beside it.
    ids.windows(2).map(|pair| same(pair) + 1).max().unwrap_or(0).max(SHORTEST_ID)
}

/// The beginning of an id is still one; of a text that is not all, an ellipsis tells.
fn cut(cell: &str, most: usize, kind: Kind) -> String {
    match kind {
        Kind::Figure => cell.to_owned(),
        _ if cell.chars().count() <= most => cell.to_owned(),
        Kind::Id => cell.chars().take(most).collect(),
        Kind::Text => cell.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(room: Option<usize>) -> Table {
        let columns = [("ID", Kind::Id), ("NAME", Kind::Text), ("PID", Kind::Figure)];
        Table::new(columns.map(|(title, kind)| (title.to_owned(), kind)).to_vec(), 60, room)
    }

    fn line(id: &str, name: &str) -> Vec<String> {
        vec![id.to_owned(), name.to_owned(), "123456".to_owned()]
    }

    #[test]
    fn a_wide_terminal_and_a_pipe_get_all() {
        let lines = || vec![line(&"ab".repeat(28), &"n".repeat(30))];
        for room in [None, Some(200)] {
            let (text, _) = table(room).text(lines());
            assert!(text.contains(&"ab".repeat(28)) && text.contains(&"n".repeat(30)), "{text}");
        }
    }

    #[test]
    fn a_narrow_one_gets_shorter_ids_before_shorter_names() {
        let ids =
            [format!("0123456789{}", "a".repeat(30)), format!("0123456788{}", "b".repeat(30))];
        let lines = || ids.iter().map(|id| line(id, "a_name_of_some_length")).collect();
        let (text, _) = table(Some(60)).text(lines());
        assert!(text.contains("0123456789  a_name_of_some_length  123456"), "{text}");
        assert!(text.contains("0123456788  a_name"), "they are told apart: {text}");
        let (text, _) = table(Some(30)).text(lines());
        assert!(text.contains("0123456789  a_name_of…  123456"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 30), "{text}");
    }

    #[test]
    fn colours_change_no_width() {
        let lines = || vec![line("abab", "FAILED"), line("cdcd", "a_longer_name")];
        let (plain, _) = table(Some(60)).text(lines());
        let (painted, _) = table(Some(60)).coloured(true).text(lines());
        assert!(painted.contains("\x1b[31mFAILED\x1b[0m"), "{painted}");
        let bare = ["\x1b[1m", "\x1b[31m", "\x1b[0m"].iter();
        assert_eq!(bare.fold(painted, |text, code| text.replace(code, "")), plain);
    }

    #[test]
    fn what_has_no_room_at_all_is_left_out_and_named() {
        let mut table = table(Some(20));
        let mut text = Vec::new();
        table.add(line(&"ab".repeat(28), "a_long_name"), &mut text).expect("written");
        assert_eq!(table.finish(&mut text).expect("written"), ["PID"]);
        let text = String::from_utf8(text).expect("text");
        assert_eq!(text, "ID        NAME\nabababab  a_long_na…\n");
    }

    #[test]
    fn lines_are_written_as_they_come_when_the_widths_are_known() {
        let mut table = table(None);
        let mut text = Vec::new();
        for _ in 0..FIRST - 1 {
            table.add(line("a", "b"), &mut text).expect("written");
        }
        assert!(text.is_empty(), "the widest may still come");
        table.add(line("a", "bbb"), &mut text).expect("written");
        assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), FIRST + 1);
        text.clear();
        table.add(line("a", "longer than the first"), &mut text).expect("written");
        assert_eq!(text, b"a   longer than the first  123456\n", "nothing is lost");
    }
}
