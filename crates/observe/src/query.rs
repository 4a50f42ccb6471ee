//! Which rows are wanted, in which order, and which part of them.

use std::cmp::Ordering;
use std::str::FromStr;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::resource::Resource;

/// A condition on a column. All conditions of a query must hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// The column.
    pub key: String,
    /// Whether the column must not have the value.
    pub negated: bool,
    /// The value; case does not matter.
    pub value: String,
}

impl Filter {
    /// `operator` is `=`, which may be written `==`, or `!=`.
    pub fn new(key: &str, operator: &str, value: &str) -> Result<Self> {
        let negated = match operator {
            "=" | "==" => false,
            "!=" => true,
            other => {
                return Err(Error::BadQuery(format!(
                    "a filter's operator is = or !=, not {other}"
                )));
            }
        };
        Ok(Self { key: column(key), negated, value: value.trim().to_owned() })
    }

    pub(crate) fn holds(&self, value: &Value) -> bool {
        is_equal(value, &self.value) != self.negated
    }
}

impl FromStr for Filter {
    type Err = Error;

    /// `key=value`, `key==value` or `key!=value`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong =
            || Error::BadQuery(format!("a filter is key=value or key!=value, not {text:?}"));
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let (key, operator, value) = match key.strip_suffix('!') {
            Some(key) => (key, "!=", value),
            None => (key, "=", value.strip_prefix('=').unwrap_or(value)),
        };
        if key.trim().is_empty() {
            return Err(wrong());
        }
        Self::new(key, operator, value)
    }
}

/// A column as it is meant: tables have their names in capitals.
fn column(name: &str) -> String {
    name.trim().to_ascii_lowercase()
}

fn is_equal(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => same(text, wanted),
        Value::Null => wanted.is_empty() || same("null", wanted) || same("none", wanted),
        Value::Bool(truth) => same(if *truth { "true" } else { "false" }, wanted),
        Value::Number(number) => match (number.as_f64(), wanted.parse::<f64>()) {
            (Some(number), Ok(wanted)) => number == wanted,
            _ => false,
        },
        other => same(&other.to_string(), wanted),
    }
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || a.to_lowercase() == b.to_lowercase()
}

/// An order of rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sort {
    /// By this column.
    pub key: String,
    /// The largest first.
    pub descending: bool,
}

impl From<&str> for Sort {
    /// `key`, or `-key` for the largest first.
    fn from(text: &str) -> Self {
        match text.strip_prefix('-') {
            Some(key) => Self { key: column(key), descending: true },
            None => Self { key: column(text), descending: false },
        }
    }
}

/// Which rows are wanted. The default is all of them.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// What must hold of each.
    pub filters: Vec<Filter>,
    /// A text that one of their columns must contain; case does not matter.
    pub search: Option<String>,
    /// In which order; else as they come, the newest tasks first.
    pub sort: Option<Sort>,
    /// So many at most.
    pub limit: Option<usize>,
    /// So many are left out first.
    pub offset: usize,
    /// With the columns that cost more to find out.
    pub detail: bool,
}

/// A part of the rows there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Rows there are.
    pub total: usize,
    /// Rows that meet the conditions.
    pub filtered: usize,
    /// Those of them that were wanted.
    pub rows: Vec<Value>,
    /// What is missing, in sentences: nodes that did not answer.
    pub notes: Vec<String>,
}

impl Query {
    /// Refuses columns that there are not, and values that a column never has.
    pub fn check(&self, resource: Resource) -> Result<()> {
        let columns: Vec<&str> = resource.list_columns().collect();
        let sorted = self.sort.iter().map(|sort| &sort.key);
        for key in self.filters.iter().map(|filter| &filter.key).chain(sorted) {
            if !columns.contains(&key.as_str()) {
                return Err(Error::BadQuery(format!(
                    "{resource} have no column {key:?} to filter or sort by; there are: {}",
                    columns.join(", ")
                )));
            }
        }
        for Filter { key, value, .. } in &self.filters {
            let known = resource.values(key).unwrap_or_default();
            let of_ray = resource.values_of_ray(key);
            if !known.is_empty() && !known.iter().chain(of_ray).any(|known| same(known, value)) {
                return Err(Error::BadQuery(format!(
                    "{key} of {resource} is never {value:?}; it is one of: {}",
                    known.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// Whether something in the columns meets the conditions.
    pub(crate) fn admits(&self, resource: Resource, value: impl Fn(&str) -> Value) -> bool {
        let contains = |text: &str| {
            let text = text.to_lowercase();
            resource.searched_columns().any(|column| match value(column) {
                Value::String(found) => found.to_lowercase().contains(&text),
                Value::Number(found) => found.to_string().contains(&text),
                _ => false,
            })
        };
        self.filters.iter().all(|filter| filter.holds(&value(&filter.key)))
            && self.search.as_deref().is_none_or(|text| text.is_empty() || contains(text))
    }

    /// The part that is wanted of things that meet the conditions, in order; and how
    /// many of those there are.
    pub(crate) fn part<T>(
        &self,
        mut things: Vec<T>,
        value: impl Fn(&T, &str) -> Value,
    ) -> (usize, Vec<T>) {
        let filtered = things.len();
        if let Some(sort) = &self.sort {
            // Nothing comes last, whichever way.
            let mut keyed: Vec<(Value, T)> =
                things.into_iter().map(|thing| (value(&thing, &sort.key), thing)).collect();
            keyed.sort_by(|(a, _), (b, _)| match (a.is_null(), b.is_null()) {
                (false, false) if sort.descending => compare(b, a),
                (false, false) => compare(a, b),
                (a, b) => a.cmp(&b),
            });
            things = keyed.into_iter().map(|(_, thing)| thing).collect();
        }
        let wanted = things.into_iter().skip(self.offset);
        (filtered, wanted.take(self.limit.unwrap_or(usize::MAX)).collect())
    }

    /// The page of rows that exist already.
    pub(crate) fn page(&self, resource: Resource, rows: Vec<Value>, notes: Vec<String>) -> Page {
        let total = rows.len();
        let value = |row: &Value, key: &str| row.get(key).cloned().unwrap_or(Value::Null);
        let admitted = rows.into_iter().filter(|row| self.admits(resource, |key| value(row, key)));
        let (filtered, rows) = self.part(admitted.collect(), value);
        Page { total, filtered, rows, notes }
    }
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0))
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (a, b) => a.to_string().cmp(&b.to_string()),
    }
}

/// Counts rows by two columns: name, and state.
pub(crate) fn summarise(rows: &[Value], name: &str, kind: Option<&str>, state: &str) -> Value {
    let mut groups: Map<String, Value> = Map::new();
    let text = |row: &Value, key: &str| match row.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    for row in rows {
        let group = groups.entry(text(row, name)).or_insert_with(|| {
            let kind = kind.map_or(Value::Null, |kind| text(row, kind).into());
            serde_json::json!({ "name": text(row, name), "type": kind, "states": {} })
        });
        let count = &mut group["states"][text(row, state)];
        *count = (count.as_u64().unwrap_or(0) + 1).into();
    }
    let rows: Vec<Value> = groups.into_iter().map(|(_, group)| group).collect();
    serde_json::json!({ "rows": rows, "total": total(&rows) })
}

/// How many things the groups of a summary have together.
pub(crate) fn total(rows: &[Value]) -> u64 {
    let states = rows.iter().filter_map(|row| row["states"].as_object());
    states.flat_map(|states| states.values()).filter_map(Value::as_u64).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::row::Mark;

    fn rows() -> Vec<Value> {
        (0..10)
            .map(|pid| {
                let (state, name) = (["ALIVE", "DEAD"][pid % 2], format!("a<\"{pid}"));
                json!({ "actor_id": format!("{pid:02}"), "pid": pid, "state": state, "name": name })
            })
            .collect()
    }

    fn ids(query: &Query) -> Vec<String> {
        let page = query.page(Resource::Actors, rows(), Vec::new());
        assert_eq!(page.total, 10);
        page.rows.iter().map(|row| row["actor_id"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn filters_are_read_as_they_are_written() {
        let filter: Filter = "name!=a=b".parse().unwrap();
        assert_eq!(filter, Filter::new("name", "!=", "a=b").unwrap());
        assert_eq!("a = b".parse::<Filter>().unwrap(), Filter::new("a", "=", "b").unwrap());
        assert_eq!("A==b".parse::<Filter>().unwrap(), Filter::new("a", "==", "b").unwrap());
        assert_eq!("a===b".parse::<Filter>().unwrap().value, "=b");
        for wrong in ["", "name", "=x", "!=x"] {
            assert!(wrong.parse::<Filter>().is_err(), "{wrong}");
        }
        assert!(Filter::new("a", ">", "1").is_err());
    }

    #[test]
    fn all_conditions_must_hold_and_case_does_not_matter() {
        let filters = vec!["state=dead".parse().unwrap(), "pid!=3".parse().unwrap()];
        let query = Query { filters, ..Query::default() };
        assert_eq!(ids(&query), ["01", "05", "07", "09"]);
    }

    #[test]
    fn rows_are_sorted_and_cut() {
        let sort = Some(Sort::from("-pid"));
        let query = Query { sort, offset: 2, limit: Some(3), ..Query::default() };
        assert_eq!(ids(&query), ["07", "06", "05"]);
        let query = Query { offset: 100, ..Query::default() };
        assert!(ids(&query).is_empty());
    }

    #[test]
    fn a_search_looks_into_names_and_ids() {
        let query = Query { search: Some("A<\"7".into()), ..Query::default() };
        assert_eq!(ids(&query), ["07"]);
    }

    #[test]
    fn unknown_columns_are_refused_with_those_there_are() {
        let query = Query { filters: vec!["nmae=x".parse().unwrap()], ..Query::default() };
        let text = query.check(Resource::Actors).unwrap_err().to_string();
        assert!(text.contains("nmae") && text.contains("class_name"), "{text}");
        let query = Query { sort: Some("-nope".into()), ..Query::default() };
        assert!(query.check(Resource::Jobs).is_err());
        let query = Query { sort: Some("-START_TIME_MS".into()), ..Query::default() };
        assert!(query.check(Resource::Jobs).is_ok());
    }

    #[test]
    fn values_that_a_column_never_has_are_refused_with_those_it_has() {
        let check = |resource: Resource, filter: &str| {
            let filters = vec![filter.parse().unwrap()];
            Query { filters, ..Query::default() }.check(resource).map_err(|e| e.to_string())
        };
        let text = check(Resource::Tasks, "state=FAILD").unwrap_err();
        assert!(text.contains("FAILD") && text.contains("RUNNING, FINISHED, FAILED"), "{text}");
        assert!(check(Resource::Tasks, "STATE!=failed").is_ok());
        assert!(check(Resource::Tasks, "name=FAILD").is_ok());
        assert!(check(Resource::Workers, "is_alive=yes").is_err());
        // Every column that is said to have few values is one, as is that of a summary.
        for resource in Resource::ALL {
            assert!(!resource.states().is_empty(), "{resource}");
            for mark in [Mark::Id, Mark::State] {
                let marked = resource.columns().iter().filter(|column| column.is(mark));
                assert_eq!(marked.count(), 1, "{resource} {mark:?}");
            }
        }
        let states = oxiray_events::State::ALL.map(oxiray_events::State::as_str);
        assert_eq!(Resource::Tasks.states(), states);
    }

    #[test]
    fn what_is_nothing_is_equal_to_nothing_and_sorted_last() {
        assert!(is_equal(&Value::Null, "none") && is_equal(&Value::Null, ""));
        assert!(is_equal(&json!(3), "3.0") && !is_equal(&json!(3), "x"));
        let rows = vec![json!({"pid": null}), json!({"pid": 2}), json!({"pid": 1})];
        for (sort, first) in [("pid", 1), ("-pid", 2)] {
            let query = Query { sort: Some(sort.into()), ..Query::default() };
            let page = query.page(Resource::Actors, rows.clone(), Vec::new());
            assert!(page.rows[0]["pid"] == first && page.rows[2]["pid"].is_null());
        }
    }

    #[test]
    fn a_summary_counts_by_name_and_state() {
        let rows = vec![
            json!({"c": "A", "s": "x"}),
            json!({"c": "A", "s": "y"}),
            json!({"c": "A", "s": "x"}),
        ];
        let summary = summarise(&rows, "c", None, "s");
        assert_eq!(summary["rows"][0]["states"], json!({"x": 2, "y": 1}));
        assert_eq!(summary["total"], 3);
    }
}
