//! YAML: blocks for what has parts; texts in quotes as in JSON, which is YAML too.

use serde_json::{Map, Value};

use super::cell::escaped;

/// Fields as they are to be shown: the columns first, in their order.
pub(super) fn in_order<'a>(
    fields: &'a Map<String, Value>,
    columns: &[&str],
) -> Vec<(&'a String, &'a Value)> {
    let place = |key: &str| columns.iter().position(|column| *column == key);
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| place(key).unwrap_or(usize::MAX));
    fields
}

/// One document. Fields come in the order of the columns.
pub(super) fn yaml(value: &Value, columns: &[&str]) -> String {
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
