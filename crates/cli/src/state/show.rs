//! Rows as a table, as JSON, as YAML. What a program called itself cannot break a table,
//! nor write to the terminal anything but text.

use clap::ValueEnum;
use oxiray_observe::Resource;
use serde_json::{Map, Value};

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

/// Characters of a cell, unless all is wanted. Ids fit.
const WIDEST: usize = 60;

/// Rows of a resource.
pub(super) fn rows(resource: Resource, rows: &[Value], format: Format, detail: bool) -> String {
    match format {
        Format::Table if detail => {
            let columns: Vec<&str> = resource.all_columns().collect();
            table(&columns, rows, usize::MAX)
        }
        Format::Table => table(resource.table_columns(), rows, WIDEST),
        Format::Json => json(&Value::Array(rows.to_vec())),
        Format::Yaml => {
            let columns: Vec<&str> = resource.all_columns().collect();
            yaml(&Value::Array(rows.to_vec()), &columns)
        }
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

/// A summary: a line for each name, with a column for each state.
pub(super) fn groups(summary: &Value, format: Format) -> String {
    match format {
        Format::Json => return json(summary),
        Format::Yaml => return yaml(summary, &[]),
        Format::Table => {}
    }
    let groups = summary["rows"].as_array().cloned().unwrap_or_default();
    let mut states: Vec<String> = Vec::new();
    for group in &groups {
        for state in group["states"].as_object().into_iter().flatten().map(|(state, _)| state) {
            if !states.contains(state) {
                states.push(state.clone());
            }
        }
    }
    let mut lines = vec![vec!["NAME".to_owned(), "TYPE".to_owned()]];
    lines[0].extend(states.iter().map(|state| plain(if state.is_empty() { "-" } else { state })));
    for group in &groups {
        let mut line = vec![cell("name", &group["name"]), cell("type", &group["type"])];
        let count = |state: &String| group["states"].get(state).and_then(Value::as_u64);
        line.extend(states.iter().map(|state| count(state).unwrap_or(0).to_string()));
        lines.push(line);
    }
    format!("{}{} in all\n", aligned(lines, WIDEST), summary["total"])
}

fn json(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    // Line ends are between values: those within are escaped already.
    let lines = text.lines().map(|line| escaped(line) + "\n");
    lines.collect()
}

fn table(columns: &[&str], rows: &[Value], widest: usize) -> String {
    let mut lines = vec![columns.iter().map(|column| column.to_uppercase()).collect::<Vec<_>>()];
    let line = |row: &Value| columns.iter().map(|column| cell(column, &row[*column])).collect();
    lines.extend(rows.iter().map(line));
    aligned(lines, widest)
}

fn aligned(mut lines: Vec<Vec<String>>, widest: usize) -> String {
    for cell in lines.iter_mut().flatten() {
        if cell.chars().count() > widest {
            *cell = cell.chars().take(widest - 1).chain(['…']).collect();
        }
    }
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// One value in a line: `-` for nothing, times as people read them.
fn cell(column: &str, value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) if text.is_empty() => "-".into(),
        Value::String(text) => plain(text),
        Value::Number(ms) if column.ends_with("_time_ms") => {
            ms.as_f64().map_or_else(|| ms.to_string(), time)
        }
        Value::Number(ms) if column.ends_with("_ms") => {
            ms.as_f64().map_or_else(|| ms.to_string(), |ms| format!("{ms:.3}"))
        }
        other => plain(&other.to_string()),
    }
}

/// A text without anything that would end the line or move the cursor.
fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() || is_invisible(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// JSON in which nothing moves the cursor or hides: it leaves more than a terminal bears as it is.
fn escaped(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        match character.is_control() || is_invisible(character) {
            // Each of them is one unit of UTF-16.
            true => shown.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => shown.push(character),
        }
    }
    shown
}

/// Line ends, and what turns the direction of writing: a name could pose as another.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' | '\u{61c}' | '\u{feff}')
}

/// `2026-01-31 12:00:00.123`, in universal time.
fn time(ms: f64) -> String {
    let ms = ms.max(0.0) as u64;
    let (days, rest) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = date(days);
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    let (seconds, thousandths) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}.{thousandths:03}")
}

/// The date so many days after 1970-01-01. Years begin in March here: then the day that
/// some lack is the last.
fn date(days: u64) -> (u64, u64, u64) {
    const OF_400_YEARS: u64 = 146_097;
    let shifted = days + 719_468;
    let (era, day) = (shifted / OF_400_YEARS, shifted % OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, years) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + years, month, of_month)
}

/// Fields as they are to be shown: the columns first, in their order.
fn in_order<'a>(fields: &'a Map<String, Value>, columns: &[&str]) -> Vec<(&'a String, &'a Value)> {
    let place = |key: &str| columns.iter().position(|column| *column == key);
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| place(key).unwrap_or(usize::MAX));
    fields
}

/// YAML: blocks for what has parts; texts in quotes as in JSON, which is YAML too. Fields come in
/// the order of the columns.
fn yaml(value: &Value, columns: &[&str]) -> String {
    let mut text = String::new();
    match value {
        Value::Array(items) if items.is_empty() => text.push_str("[]\n"),
        value => block(value, columns, 0, &mut text),
    }
    text
}

fn block(value: &Value, columns: &[&str], depth: usize, into: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Array(items) => {
            for item in items {
                into.push_str(&indent);
                into.push('-');
                entry(item, columns, depth, true, into);
            }
        }
        Value::Object(fields) => {
            for (key, value) in in_order(fields, columns) {
                into.push_str(&indent);
                into.push_str(&key_text(key));
                into.push(':');
                entry(value, columns, depth, false, into);
            }
        }
        scalar => into.push_str(&format!("{indent}{}\n", scalar_text(scalar))),
    }
}

/// What stands behind `-` or `key:`.
fn entry(value: &Value, columns: &[&str], depth: usize, of_list: bool, into: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() && of_list => {
            // The first field stands behind the dash.
            let mut inner = String::new();
            block(value, columns, depth + 1, &mut inner);
            into.push(' ');
            into.push_str(inner.trim_start());
        }
        Value::Object(fields) if !fields.is_empty() => {
            into.push('\n');
            block(value, columns, depth + 1, into);
        }
        Value::Array(items) if !items.is_empty() => {
            into.push('\n');
            block(value, columns, depth + 1, into);
        }
        other => into.push_str(&format!(" {}\n", scalar_text(other))),
    }
}

/// A key of ours is a word; others, such as the names of resources, are texts.
fn key_text(key: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
    match key.chars().all(is_word) && key.starts_with(starts) && !is_special(key) {
        true => key.to_owned(),
        false => escaped(&Value::String(key.to_owned()).to_string()),
    }
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let is_simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/');
            let simple = text.chars().all(is_simple)
                && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/')
                && !is_special(text);
            if simple { text.clone() } else { escaped(&value.to_string()) }
        }
        other => other.to_string(),
    }
}

/// Words that YAML, or a reader of it, takes for something else.
fn is_special(word: &str) -> bool {
    let words = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"];
    words.contains(&word.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_name_breaks_a_table() {
        let name = "<script>\"'\n\x1b[31m\u{202e}\u{0}";
        let rows = [json!({ "job_id": "01", "entrypoint": name, "start_time_ms": 0.0 })];
        let text = self::rows(Resource::Jobs, &rows, Format::Table, false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[1].contains(r#"<script>"'\n\u{1b}[31m\u{202e}\u{0}"#), "{text}");
        assert!(lines[1].contains("1970-01-01 00:00:00.000"), "{text}");
    }

    #[test]
    fn long_cells_are_cut_and_columns_stand_below_each_other() {
        let rows = [json!({ "job_id": "ä".repeat(500), "status": "RUNNING" })];
        let text = self::rows(Resource::Jobs, &rows, Format::Table, false);
        let at = |line: &str, word: &str| {
            let found = line.find(word).unwrap();
            line[..found].chars().count()
        };
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(at(lines[0], "STATUS"), at(lines[1], "RUNNING"));
        assert!(text.contains('…') && lines[1].chars().count() < 200);
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
    fn times_are_dates() {
        assert_eq!(time(1_709_210_096_007.4), "2024-02-29 12:34:56.007");
        assert_eq!(time(4_102_444_799_999.0), "2099-12-31 23:59:59.999");
    }

    #[test]
    fn yaml_quotes_what_could_be_taken_for_something_else() {
        let value = json!([{
            "name": "no",
            "id": "0123",
            "path": "/tmp/x",
            "text": "a: b\n\"c\"",
            "none": null,
            "resources": { "CPU": 1, "node:1.2.3.4": 0.5 },
            "empty": {},
            "list": [1, "x y", { "a": [] }],
        }]);
        let text = yaml(&value, &["name", "id"]);
        let expected = concat!(
            "- name: \"no\"\n",
            "  id: \"0123\"\n",
            "  empty: {}\n",
            "  list:\n",
            "    - 1\n",
            "    - \"x y\"\n",
            "    - a: []\n",
            "  none: null\n",
            "  path: /tmp/x\n",
            "  resources:\n",
            "    CPU: 1\n",
            "    \"node:1.2.3.4\": 0.5\n",
            "  text: \"a: b\\n\\\"c\\\"\"\n",
        );
        assert_eq!(text, expected);
        assert_eq!(yaml(&json!([]), &[]), "[]\n");
    }
}
