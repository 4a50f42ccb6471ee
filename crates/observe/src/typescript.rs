//! The rows as types of TypeScript, for the dashboard's page: `ui/src/row-types.ts`.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::row::{Column, Kind};
use crate::rows::actors::{ActorDetail, ActorRow};
use crate::rows::jobs::JobRow;
use crate::rows::nodes::NodeRow;
use crate::rows::objects::ObjectRow;
use crate::rows::placement_groups::{PlacementGroupDetail, PlacementGroupRow};
use crate::rows::tasks::{TaskDetail, TaskRow};
use crate::rows::workers::WorkerRow;

const HEAD: &str = "\
// The rows that the server answers with, made from their declarations (crates/observe/src/rows) by
// `cargo run -p oxiray-observe --example row_types > ui/src/row-types.ts`; a test sees that it is.
";

/// Characters of a line.
const WIDEST: usize = 100;

const ROWS: &[(&str, &[Column])] = &[
    ("TaskRow", TaskRow::COLUMNS),
    ("TaskDetail", TaskDetail::COLUMNS),
    ("ActorRow", ActorRow::COLUMNS),
    ("ActorDetail", ActorDetail::COLUMNS),
    ("ObjectRow", ObjectRow::COLUMNS),
    ("NodeRow", NodeRow::COLUMNS),
    ("WorkerRow", WorkerRow::COLUMNS),
    ("JobRow", JobRow::COLUMNS),
    ("PlacementGroupRow", PlacementGroupRow::COLUMNS),
    ("PlacementGroupDetail", PlacementGroupDetail::COLUMNS),
];

/// The text of the file.
pub fn text() -> String {
    let mut text = HEAD.to_owned();
    let mut within = BTreeMap::new();
    for (name, columns) in ROWS {
        interface(&mut text, name, columns);
        columns.iter().for_each(|column| collect(column.kind, &mut within));
    }
    for (name, kind) in within {
        match kind {
            Kind::Record(_, columns) => interface(&mut text, name, columns),
            Kind::OneOf(_, words) => {
                text.push_str(&union(name, words));
            }
            _ => {}
        }
    }
    text
}

fn interface(text: &mut String, name: &str, columns: &[Column]) {
    // Writing to a String does not fail.
    let _ = writeln!(text, "\nexport interface {name} {{");
    for Column { name, about, kind, .. } in columns {
        let _ = writeln!(text, "  /**{about} */\n  {name}: {};", of(*kind));
    }
    text.push_str("}\n");
}

/// In as few lines as there is room for, as the page's formatter has it.
fn union(name: &str, words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let (head, words) = (format!("export type {name} ="), format!("{};", quoted.join(" | ")));
    if head.len() + 1 + words.len() <= WIDEST {
        return format!("\n{head} {words}\n");
    }
    if 2 + words.len() <= WIDEST {
        return format!("\n{head}\n  {words}\n");
    }
    format!("\n{head}\n  | {};\n", quoted.join("\n  | "))
}

fn of(kind: Kind) -> String {
    match kind {
        Kind::Text => "string".into(),
        Kind::Number => "number".into(),
        Kind::Truth => "boolean".into(),
        Kind::OneOf(name, _) | Kind::Record(name, _) => name.into(),
        Kind::Maybe(kind) => format!("{} | null", of(*kind)),
        Kind::List(kind) => format!("{}[]", of(*kind)),
        Kind::Map(kind) => format!("Record<string, {}>", of(*kind)),
    }
}

/// What has a name of its own, by that.
fn collect(kind: Kind, found: &mut BTreeMap<&'static str, Kind>) {
    match kind {
        Kind::OneOf(name, _) => {
            found.insert(name, kind);
        }
        Kind::Record(name, columns) => {
            found.insert(name, kind);
            columns.iter().for_each(|column| collect(column.kind, found));
        }
        Kind::Maybe(kind) | Kind::List(kind) | Kind::Map(kind) => collect(*kind, found),
        Kind::Text | Kind::Number | Kind::Truth => {}
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_has_these_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/src/row-types.ts");
        let there = std::fs::read_to_string(path).expect("it can be read");
        let how = "cargo run -p oxiray-observe --example row_types > ui/src/row-types.ts";
        assert!(there == super::text(), "rows have changed; run `{how}`");
    }
}
