//! Nowhere: for a cluster that need not outlive its control service.

use std::collections::BTreeMap;

use oxiray_control::{Change, Record, Table};

use crate::{Persist, PersistError};

/// Keeps state for as long as it lives itself.
#[derive(Debug, Default)]
pub struct Memory {
    kept: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    forgets: bool,
}

impl Memory {
    /// One that does keep what is written, for tests.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that need not be read again, and so keeps nothing.
    pub fn forgetful() -> Self {
        Self { forgets: true, ..Self::default() }
    }
}

impl Persist for Memory {
    fn load(&mut self) -> Result<Vec<Record>, PersistError> {
        let record = |((table, key), value): (&(Table, Vec<u8>), &Vec<u8>)| Record {
            table: *table,
            key: key.clone(),
            value: value.clone(),
        };
        Ok(self.kept.iter().map(record).collect())
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), PersistError> {
        for change in changes.iter().filter(|_| !self.forgets) {
            match change.clone() {
                Change::Put(Record { table, key, value }) => {
                    self.kept.insert((table, key), value);
                }
                Change::Delete { table, key } => {
                    self.kept.remove(&(table, key));
                }
            }
        }
        Ok(())
    }

    fn describe(&self) -> String {
        "memory".into()
    }
}
