//! One variable: how it is declared, and how it is read.

use std::ffi::OsString;
use std::ops::RangeInclusive;

/// What a value may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Any text.
    Text,
    /// A file or directory.
    Path,
    /// `0` or `false` is off, `1` or `true` on.
    Switch,
    /// A whole number.
    Count,
    /// A number, perhaps with a fraction.
    Number,
    /// A regular expression.
    Pattern,
}

impl Kind {
    /// In a table for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Path => "path",
            Self::Switch => "switch",
            Self::Count => "whole number",
            Self::Number => "number",
            Self::Pattern => "regular expression",
        }
    }
}

/// Who sets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Audience {
    /// People.
    User,
    /// One process of oxiray, for another that it starts.
    Ourselves,
}

/// An environment variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Another name of it, which counts less: Ray's.
    pub or: Option<&'static str>,
    /// What it may be.
    pub kind: Kind,
    /// What it is unless said; empty: nothing.
    pub default: &'static str,
    /// What it is for.
    pub says: &'static str,
    /// Who sets it.
    pub audience: Audience,
}

/// A value that is none of its kind.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{name} must be {wanted}, not {text:?}")]
pub struct Malformed {
    /// The name by which it was given.
    pub name: &'static str,
    /// What it may be.
    pub wanted: String,
    /// What it is.
    pub text: String,
}

impl Setting {
    /// By which name it was given, and what it says. An empty one says nothing.
    pub fn given(&self) -> Option<(&'static str, String)> {
        let of = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let names = std::iter::once(self.name).chain(self.or);
        names.into_iter().find_map(|name| Some((name, of(name)?)))
    }

    /// What it says.
    pub fn text(&self) -> Option<String> {
        self.given().map(|(_, text)| text)
    }

    /// What it says, whether or not that is text.
    pub fn path(&self) -> Option<OsString> {
        let of = |name| std::env::var_os(name).filter(|text| !text.is_empty());
        of(self.name).or_else(|| of(self.or?))
    }

    /// Whether it is on, or would be unless said.
    pub fn is_on(&self) -> bool {
        let text = self.text();
        let text = text.as_deref().unwrap_or(self.default).trim();
        !(text.is_empty() || text == "0" || text.eq_ignore_ascii_case("false"))
    }

    /// The number that it says, or is unless said.
    pub fn number(&self, range: RangeInclusive<f64>) -> Result<f64, Malformed> {
        let (name, text) = self.given().unwrap_or((self.name, self.default.to_owned()));
        match text.trim().parse() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => {
                let wanted = format!("a number from {} to {}", range.start(), range.end());
                Err(Malformed { name, wanted, text })
            }
        }
    }

    /// The whole number that it is unless said.
    pub fn default_count(&self) -> u64 {
        self.default.parse().unwrap_or_default()
    }

    /// The whole number that it says, or is unless said.
    pub fn count(&self) -> Result<u64, Malformed> {
        let (name, text) = self.given().unwrap_or((self.name, self.default.to_owned()));
        let malformed = || Malformed { name, wanted: "a whole number".into(), text: text.clone() };
        text.trim().parse().map_err(|_| malformed())
    }
}
