//! Rows as a table, as JSON, as YAML. What a program called itself cannot break a table,
//! nor write to the terminal anything but text.
//!
//! - [`Rows`]: many rows, each written when it comes; [`several`], [`one`]: few, or a single one
//! - [`groups`]: a summary
//! - `cell`: a value in a line; `yaml`: the document

pub(crate) mod cell;
mod yaml;

use std::io::{self, Write};

use clap::ValueEnum;
use oxiray_observe::Resource;
use serde_json::Value;

use crate::print::has_colours;
use crate::table::{Kind, Table};
use cell::{cell, escaped, plain};
use yaml::{in_order, yaml};

/// How rows are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Format {
    /// Lines with columns, for people.
    Table,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// Lines of a summary may have this many characters on any terminal, so that no state is hidden:
/// room for the shortest names, a count below a trillion, and any state.
const NARROWEST: usize = 61;

/// Characters of a cell, unless all is wanted. Ids fit.
const WIDEST: usize = 60;

/// Rows of a resource, one after the other: a million at once would be gigabytes.
pub(super) struct Rows<W> {
    out: W,
    shape: Shape,
    count: usize,
}

enum Shape {
    Table(Vec<&'static str>, Table),
    Json,
    Yaml(Vec<&'static str>),
}

impl<W: Write> Rows<W> {
    /// `room`: how many characters a line of a table may have, if that matters.
    pub(super) fn new(
        resource: Resource,
        format: Format,
        detail: bool,
        room: Option<usize>,
        out: W,
    ) -> Self {
        let shape = match format {
            Format::Table => {
                let columns: Vec<&str> = match detail {
                    true => resource.all_columns().collect(),
                    false => resource.table_columns().collect(),
                };
                // Whoever wants every column wants all of it.
                let (widest, room) = if detail { (usize::MAX, None) } else { (WIDEST, room) };
                let titles = columns.iter().map(|column| (column.to_uppercase(), kind(column)));
                let table = Table::new(titles.collect(), widest, room).coloured(has_colours());
                Shape::Table(columns.clone(), table)
            }
            Format::Json => Shape::Json,
            Format::Yaml => Shape::Yaml(resource.all_columns().collect()),
        };
        Self { out, shape, count: 0 }
    }

    pub(super) fn add(&mut self, row: &Value) -> io::Result<()> {
        let is_first = self.count == 0;
        self.count += 1;
        match &mut self.shape {
            Shape::Table(columns, table) => {
                let cells = columns.iter().map(|column| cell(column, &row[*column]));
                table.add(cells.collect(), &mut self.out)
            }
            Shape::Json => {
                self.out.write_all(if is_first { b"[" } else { b"," })?;
                json_lines(row).try_for_each(|line| write!(self.out, "\n  {line}"))
            }
            Shape::Yaml(columns) => {
                let item = std::slice::from_ref(row);
                self.out.write_all(yaml(&Value::from(item), columns).as_bytes())
            }
        }
    }

    /// The end. How many there were, and the columns of a table that had no room.
    pub(super) fn finish(mut self) -> io::Result<(usize, Vec<String>)> {
        let mut no_room = Vec::new();
        match self.shape {
            Shape::Table(_, table) => no_room = table.finish(&mut self.out)?,
            Shape::Json if self.count > 0 => self.out.write_all(b"\n]\n")?,
            Shape::Yaml(_) if self.count > 0 => {}
            Shape::Json | Shape::Yaml(_) => self.out.write_all(b"[]\n")?,
        }
        Ok((self.count, no_room))
    }
}

/// Some rows with every column, at once.
pub(super) fn several(resource: Resource, rows: &[Value], format: Format) -> String {
    let mut text = Vec::new();
    let mut shown = Rows::new(resource, format, true, None, &mut text);
    // Memory takes whatever is written.
    let _ = rows.iter().try_for_each(|row| shown.add(row)).and_then(|()| shown.finish());
    String::from_utf8_lossy(&text).into_owned()
}

/// What is in a column, by its name.
fn kind(column: &str) -> Kind {
    const TEXTS: &[&str] = &[
        "name",
        "class_name",
        "node_name",
        "state",
        "state_message",
        "type",
        "error_type",
        "reference_type",
        "death_cause",
        "exit_detail",
        "resources_total",
        "entrypoint",
    ];
    match column {
        id if id.ends_with("_id") => Kind::Id,
        text if TEXTS.contains(&text) => Kind::Text,
        _ => Kind::Figure,
    }
}

/// One row: a line for each column.
pub(super) fn one(resource: Resource, row: &Value, format: Format) -> String {
    let columns: Vec<&str> = resource.all_columns().collect();
    match format {
        Format::Json => json(row),
        Format::Yaml => yaml(row, &columns),
        Format::Table => {
            let fields = row.as_object().map(|fields| in_order(fields, &columns));
            let fields: Vec<(String, String)> = fields
                .into_iter()
                .flatten()
                .map(|(key, value)| (key.clone(), cell(key, value)))
                .collect();
            let width = fields.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
            fields.iter().map(|(key, value)| format!("{key:width$}  {value}\n")).collect()
        }
    }
}

/// A summary: a line for each name, with a column for each state that occurs, in the order in
/// which things go through them. Where that is too wide, a line for each state of a name.
pub(super) fn groups(
    resource: Resource,
    summary: &Value,
    format: Format,
    room: Option<usize>,
) -> String {
    match format {
        Format::Json => return json(summary),
        Format::Yaml => return yaml(summary, &[]),
        Format::Table => {}
    }
    let groups = summary["rows"].as_array().cloned().unwrap_or_default();
    let count = |group: &Value, state: &str| group["states"][state].as_u64().unwrap_or(0);
    let occurs = |state: &&&str| groups.iter().any(|group| count(group, state) > 0);
    let states: Vec<&str> = resource.states().iter().filter(occurs).copied().collect();
    let names = |group: &Value| ["name", "type"].map(|column| cell(column, &group[column]));
    let mut columns = vec![("NAME".to_owned(), Kind::Text), ("TYPE".to_owned(), Kind::Text)];
    let mut narrow = columns.clone();
    columns.extend(states.iter().map(|state| (plain(state), Kind::Figure)));
    let line = |group: &Value| {
        let counts = states.iter().map(|state| count(group, state).to_string());
        names(group).into_iter().chain(counts).collect()
    };
    let (mut table, no_room) = Table::new(columns, WIDEST, room)
        .coloured(has_colours())
        .text(groups.iter().map(line).collect());
    if !no_room.is_empty() {
        narrow.extend([("COUNT".to_owned(), Kind::Figure), ("STATE".to_owned(), Kind::Figure)]);
        let lines = |group: &Value| {
            let counted = states.iter().map(|state| (count(group, state), *state));
            let mut names = names(group);
            let line = |(count, state): (u64, &str)| {
                let [name, kind] = std::mem::take(&mut names);
                vec![name, kind, count.to_string(), plain(state)]
            };
            counted.filter(|(count, _)| *count > 0).map(line).collect::<Vec<_>>()
        };
        let room = room.map(|room| room.max(NARROWEST));
        let table_of_states = Table::new(narrow, WIDEST, room).coloured(has_colours());
        (table, _) = table_of_states.text(groups.iter().flat_map(lines).collect());
    }
    format!("{table}{} in all\n", summary["total"])
}

fn json(value: &Value) -> String {
    json_lines(value).map(|line| line + "\n").collect()
}

fn json_lines(value: &Value) -> impl Iterator<Item = String> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    // Line ends are between values: those within are escaped already.
    let lines: Vec<String> = text.lines().map(escaped).collect();
    lines.into_iter()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::cell::is_invisible;
    use super::*;

    fn shown(resource: Resource, rows: &[Value], format: Format) -> String {
        let mut text = Vec::new();
        let mut shown = Rows::new(resource, format, false, None, &mut text);
        rows.iter().try_for_each(|row| shown.add(row)).expect("written");
        shown.finish().expect("written");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn no_name_breaks_a_table() {
        let name = "<script>\"'\n\x1b[31m\u{202e}\u{0}";
        let rows = [json!({ "job_id": "01", "entrypoint": name, "start_time_ms": 0.0 })];
        let text = shown(Resource::Jobs, &rows, Format::Table);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[1].contains(r#"<script>"'\n\u{1b}[31m\u{202e}\u{0}"#), "{text}");
        assert!(lines[1].contains("1970-01-01 00:00:00.000"), "{text}");
    }

    #[test]
    fn long_cells_are_cut_and_columns_stand_below_each_other() {
        let rows = [json!({ "job_id": "01", "status": "RUNNING", "entrypoint": "ä".repeat(500) })];
        let text = shown(Resource::Jobs, &rows, Format::Table);
        let at = |line: &str, word: &str| {
            let found = line.find(word).unwrap();
            line[..found].chars().count()
        };
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(at(lines[0], "STATUS"), at(lines[1], "RUNNING"));
        assert!(text.contains('…') && lines[1].chars().count() < 200);
    }

    #[test]
    fn rows_make_one_document_however_many_there_are() {
        for count in [0, 1, 3] {
            let row = |at| json!({ "job_id": format!("{at:02}"), "message": null });
            let rows: Vec<Value> = (0..count).map(row).collect();
            let text = shown(Resource::Jobs, &rows, Format::Json);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), Value::from(rows.clone()));
            assert_eq!(text, json(&Value::from(rows.clone())));
            let columns: Vec<&str> = Resource::Jobs.all_columns().collect();
            let text = shown(Resource::Jobs, &rows, Format::Yaml);
            assert_eq!(text, yaml(&Value::from(rows), &columns));
        }
    }

    #[test]
    fn json_and_yaml_leave_the_terminal_alone() {
        let name = "a\u{9b}31m\u{7f}\u{202e}\u{85}\u{1b}\u{2028}\n";
        let value = json!([{ "name": name, (name): 1 }]);
        for text in [json(&value), yaml(&value, &[])] {
            let bare = |c: char| c != '\n' && (c.is_control() || is_invisible(c));
            assert!(!text.contains(bare), "{text:?}");
            assert!(text.contains(r"a\u009b31m\u007f\u202e\u0085\u001b\u2028\n"), "{text}");
        }
        let back: Value = serde_json::from_str(&json(&value)).unwrap();
        assert_eq!(back, value);
    }

    #[test]
    fn a_summary_has_its_states_in_the_order_of_a_life() {
        let summary = json!({ "total": 6, "rows": [
            { "name": "f", "type": "NORMAL_TASK", "states": { "FAILED": 1, "RUNNING": 2 } },
            { "name": "g", "type": "NORMAL_TASK", "states": { "PENDING_ARGS_AVAIL": 3 } },
        ] });
        let text = groups(Resource::Tasks, &summary, Format::Table, None);
        let titles: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(titles, ["NAME", "TYPE", "PENDING_ARGS_AVAIL", "RUNNING", "FAILED"]);
        assert!(text.ends_with("6 in all\n"));
    }

    #[test]
    fn a_summary_hides_no_state_however_narrow_the_terminal_is() {
        let states = Resource::Tasks.states();
        let counts: serde_json::Map<String, Value> = states
            .iter()
            .enumerate()
            .map(|(at, state)| (state.to_string(), json!(at + 1)))
            .collect();
        let name = "a_function_with_a_rather_long_name";
        let summary = json!({ "total": 0, "rows": [
            { "name": name, "type": "ACTOR_CREATION_TASK", "states": counts },
            { "name": "g", "type": "NORMAL_TASK", "states": { "FAILED": 123456789 } },
        ] });
        for room in [10, 60, 80, 120, 1000] {
            let text = groups(Resource::Tasks, &summary, Format::Table, Some(room));
            for state in states {
                assert!(text.contains(state), "{state} in {room}: {text}");
            }
            assert!(text.contains("123456789"), "{text}");
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= room.max(NARROWEST), "{room}: {text}");
        }
    }
}
