//! How rows are declared: once, with the type, the meaning and the value of each column. The JSON,
//! the tables, the checks of filters and the page's TypeScript are made of that.
//!
//! - [`row!`] makes a struct with its columns; [`words!`] a column's few values
//! - [`Cell`]: what can be in a column, and how it is JSON

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What is in a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Text,
    Number,
    Truth,
    /// One of few words, in the order in which a thing goes through them.
    OneOf(&'static str, &'static [&'static str]),
    /// Perhaps nothing.
    Maybe(&'static Kind),
    List(&'static Kind),
    /// By names.
    Map(&'static Kind),
    /// A row within the row.
    Record(&'static str, &'static [Column]),
}

/// A column of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// What it says.
    pub(crate) about: &'static str,
    pub(crate) kind: Kind,
    pub(crate) marks: &'static [Mark],
}

/// What else a column is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// It names the row.
    Id,
    /// A search looks into it.
    Searched,
    /// It is one of a narrow table.
    Table,
    /// A summary counts by it.
    State,
}

impl Column {
    pub(crate) fn is(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }

    /// The values it can have, if they are few.
    pub(crate) fn values(&self) -> Option<&'static [&'static str]> {
        match self.kind {
            Kind::OneOf(_, values) => Some(values),
            Kind::Truth => Some(&["true", "false"]),
            _ => None,
        }
    }
}

/// What can be in a column.
pub(crate) trait Cell {
    const KIND: Kind;
    fn json(&self) -> Value;
}

macro_rules! plain_cells {
    ($($type:ty: $kind:ident),+) => {$(
        impl Cell for $type {
            const KIND: Kind = Kind::$kind;
            fn json(&self) -> Value {
                Value::from(self.clone())
            }
        }
    )+};
}
plain_cells!(String: Text, u16: Number, u32: Number, u64: Number, f64: Number, bool: Truth);

impl Cell for &'static str {
    const KIND: Kind = Kind::Text;
    fn json(&self) -> Value {
        (*self).into()
    }
}

impl<T: Cell> Cell for Option<T> {
    const KIND: Kind = Kind::Maybe(&T::KIND);
    fn json(&self) -> Value {
        self.as_ref().map_or(Value::Null, Cell::json)
    }
}

impl<T: Cell> Cell for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);
    fn json(&self) -> Value {
        self.iter().map(Cell::json).collect()
    }
}

impl<T: Cell> Cell for BTreeMap<String, T> {
    const KIND: Kind = Kind::Map(&T::KIND);
    fn json(&self) -> Value {
        let pairs = self.iter().map(|(name, cell)| (name.clone(), cell.json()));
        Value::Object(pairs.collect())
    }
}

/// Amounts of resources: whole ones are whole numbers.
pub type Amounts = BTreeMap<String, Amount>;

/// See [`Amounts`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Amount(pub f64);

impl Cell for Amount {
    const KIND: Kind = Kind::Number;
    fn json(&self) -> Value {
        match self.0.fract() == 0.0 && self.0.abs() < 1e15 {
            true => Value::from(self.0 as i64),
            false => Value::from(self.0),
        }
    }
}

/// The fields of one row and of what is told of it on demand, as one.
pub(crate) fn together(row: &impl Cell, detail: &impl Cell) -> Value {
    let fields = |value| match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let mut all = fields(row.json());
    all.extend(fields(detail.json()));
    Value::Object(all)
}

/// The name of a column; some are no names in Rust.
macro_rules! column_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $name:literal) => {
        $name
    };
}

/// Declares a row: each column with its type, what else it is for, and its value, which is made of
/// what is named in the first line. `Row::cell` makes one column alone: of a million tasks, only
/// those that are shown become rows.
macro_rules! row {
    (
        $(#[doc = $says:literal])+
        $row:ident of $($seen:ident: $of:ty),+;
        $($(#[doc = $about:literal])+ $field:ident $(as $name:literal)?: $type:ty $([$($mark:ident),+])? = $value:expr;)+
    ) => {
        $(#[doc = $says])+
        #[derive(Clone, PartialEq, Debug)]
        pub struct $row {
            $($(#[doc = $about])+ pub $field: $type,)+
        }

        impl $row {
            pub(crate) const COLUMNS: &'static [$crate::row::Column] = &[$($crate::row::Column {
                name: $crate::row::column_name!($field $($name)?),
                about: concat!($($about),+),
                kind: <$type as $crate::row::Cell>::KIND,
                marks: &[$($($crate::row::Mark::$mark),+)?],
            }),+];

            pub(crate) fn of($($seen: $of),+) -> Self {
                Self { $($field: $value),+ }
            }

            /// What is in one column.
            #[allow(dead_code, reason = "few are asked for a column alone")]
            pub(crate) fn cell($($seen: $of,)+ column: &str) -> serde_json::Value {
                $(if column == $crate::row::column_name!($field $($name)?) {
                    let cell: $type = $value;
                    return $crate::row::Cell::json(&cell);
                })+
                serde_json::Value::Null
            }
        }

        impl $crate::row::Cell for $row {
            const KIND: $crate::row::Kind = $crate::row::Kind::Record(stringify!($row), Self::COLUMNS);
            fn json(&self) -> serde_json::Value {
                let fields = [$((
                    $crate::row::column_name!($field $($name)?).to_owned(),
                    $crate::row::Cell::json(&self.$field),
                )),+];
                serde_json::Value::Object(fields.into_iter().collect())
            }
        }
    };
}

/// Declares the few values of a column, in the order in which a thing goes through them.
macro_rules! words {
    (
        $(#[doc = $says:literal])+
        $words:ident { $($(#[doc = $about:literal])+ $name:ident = $word:literal,)+ }
    ) => {
        $(#[doc = $says])+
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $words {
            $($(#[doc = $about])+ $name,)+
        }

        impl $words {
            /// As lists have it.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }

        impl $crate::row::Cell for $words {
            const KIND: $crate::row::Kind =
                $crate::row::Kind::OneOf(stringify!($words), &[$($word),+]);
            fn json(&self) -> serde_json::Value {
                self.word().into()
            }
        }
    };
}

pub(crate) use {column_name, row, words};
