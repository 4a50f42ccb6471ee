//! Labels of nodes, and selectors of nodes by their labels.
//!
//! A label is `key=value`. Keys are `name` or `prefix/name`; names and values
//! are at most 63 characters, letters and digits with `-`, `_` and `.` between
//! them, and values may be empty. Prefixes are dotted names, at most 253
//! characters. These are the rules of Kubernetes and of Ray.

mod syntax;

use std::collections::BTreeMap;
use std::fmt;

use syntax::{check_key, check_value};

/// The label that every node has: its id in hexadecimal.
pub const NODE_ID_LABEL: &str = "ray.io/node-id";

/// What is wrong with a label or a selector. Trying again does not help.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LabelError {
    /// A part of a list of labels has no `=` or several.
    #[error("label `{part}` is not of the form key=value")]
    NotAPair {
        /// The part.
        part: String,
    },
    /// What is before the `/` of a key.
    #[error(
        "prefix `{prefix}` of label key `{key}` is not valid: a prefix is names separated by \
         dots, at most 253 characters"
    )]
    Prefix {
        /// The prefix.
        prefix: String,
        /// The whole key.
        key: String,
    },
    /// A key, or what is after its `/`.
    #[error(
        "label key `{key}` is not valid: a name is 1 to 63 letters, digits, `-`, `_` or `.`, \
         and begins and ends with a letter or digit"
    )]
    Name {
        /// The whole key.
        key: String,
    },
    /// A value, of a label or in a selector.
    #[error(
        "value `{value}` of label `{key}` is not valid: a value is at most 63 letters, digits, \
         `-`, `_` or `.`, and begins and ends with a letter or digit"
    )]
    Value {
        /// The key it is for.
        key: String,
        /// The value.
        value: String,
    },
    /// `in(…)` without values.
    #[error("selector `{selector}` of label `{key}` lists no values")]
    NoValues {
        /// The key it is for.
        key: String,
        /// All of the selector.
        selector: String,
    },
    /// `in(` without `)`.
    #[error("selector `{selector}` of label `{key}` lacks its closing parenthesis")]
    NotClosed {
        /// The key it is for.
        key: String,
        /// All of the selector.
        selector: String,
    },
    /// A label that the cluster gives to its nodes itself.
    #[error("label `{key}` is reserved: every node gets it by itself")]
    Reserved {
        /// The key.
        key: String,
    },
}

/// How a selector looks at the value of its key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operator {
    /// The node has the key, with one of these values.
    In(Vec<String>),
    /// The node has not the key, or another value than these.
    NotIn(Vec<String>),
    /// The node has the key.
    Exists,
    /// The node has not the key.
    DoesNotExist,
}

/// A condition on one label of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Selector {
    /// The key.
    pub key: String,
    /// The condition.
    pub operator: Operator,
}

impl Selector {
    /// Parses an entry of Ray's `label_selector`: `value`, `!value`, `in(a,b)`
    /// or `!in(a,b)`.
    pub fn parse(key: &str, text: &str) -> Result<Self, LabelError> {
        check_key(key)?;
        let (negated, rest) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let values = match rest.strip_prefix("in(") {
            Some(list) => parse_list(key, text, list)?,
            // `!` alone is more likely a slip than "not the empty value".
            None if negated && rest.is_empty() => {
                return Err(LabelError::Value { key: key.into(), value: text.into() });
            }
            None => vec![check_value(key, rest)?.to_owned()],
        };
        let operator = if negated { Operator::NotIn(values) } else { Operator::In(values) };
        Ok(Self { key: key.into(), operator })
    }

    /// Whether a node with these labels is meant.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

/// `region=eu`, `region!=eu`, `region in (eu, us)`, `region`, `!region`.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.operator {
            Operator::In(values) if values.len() == 1 => write!(f, "{key}={}", values[0]),
            Operator::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", values[0]),
            Operator::In(values) => write!(f, "{key} in ({})", values.join(", ")),
            Operator::NotIn(values) => write!(f, "{key} not in ({})", values.join(", ")),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

fn parse_list(key: &str, selector: &str, list: &str) -> Result<Vec<String>, LabelError> {
    let (key_of, selector) = (|| key.to_owned(), || selector.to_owned());
    let Some(list) = list.strip_suffix(')') else {
        return Err(LabelError::NotClosed { key: key_of(), selector: selector() });
    };
    if list.trim().is_empty() {
        return Err(LabelError::NoValues { key: key_of(), selector: selector() });
    }
    let value = |part: &str| match part.trim() {
        "" => Err(LabelError::Value { key: key_of(), value: selector() }),
        value => check_value(key, value).map(str::to_owned),
    };
    list.split(',').map(value).collect()
}

/// Parses `--labels`: `key=value,key=value`, perhaps in double quotes. As in
/// Ray, the last of several values for a key counts.
pub fn parse_labels(text: &str) -> Result<BTreeMap<String, String>, LabelError> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let text = inner.unwrap_or(text);
    let mut labels = BTreeMap::new();
    if text.is_empty() {
        return Ok(labels);
    }
    for part in text.split(',') {
        let not_a_pair = || LabelError::NotAPair { part: part.to_owned() };
        let (key, value) = part.split_once('=').ok_or_else(not_a_pair)?;
        let (key, value) = (key.trim(), value.trim());
        if value.contains('=') {
            return Err(not_a_pair());
        }
        check_key(key)?;
        if key == NODE_ID_LABEL {
            return Err(LabelError::Reserved { key: key.into() });
        }
        labels.insert(key.to_owned(), check_value(key, value)?.to_owned());
    }
    Ok(labels)
}

#[cfg(test)]
mod tests;
