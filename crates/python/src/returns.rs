//! What a call returns: a value, or several, each encoded when it is made.

use oxiray_ids::ProcessId;
use oxiray_worker::{Content, ObjectKey};
use pyo3::prelude::*;

use crate::execute::Worker;
use crate::values;

/// A value as others get it, and the references inside it.
pub(crate) type Encoded = (Content, Vec<ObjectKey>);

/// What a function gave back.
pub(crate) enum Made<'py> {
    /// To be encoded.
    Value(Bound<'py, PyAny>),
    /// One for each return.
    Values(Vec<Encoded>),
}

/// Why a call has not returned.
pub(crate) struct Unreturned {
    pub(crate) error: PyErr,
    /// An argument was lost with its node: the owner has it made again, or says why not.
    pub(crate) is_lost: bool,
    /// The values of its first returns, which were there before the error was.
    pub(crate) made: Vec<Encoded>,
}

impl From<PyErr> for Unreturned {
    fn from(error: PyErr) -> Self {
        Self { error, is_lost: false, made: Vec::new() }
    }
}

impl Worker {
    /// Whether a call that was declared to return `count` values has them made one by one.
    pub(crate) fn is_generator(&self, made: &Bound<'_, PyAny>, count: u32) -> bool {
        // Of every call: a comparison, and no call into Python.
        count > 0 && made.get_type_ptr().cast() == self.generator.as_ptr()
    }

    /// Serialises the `count` values that a call returned: whoever submitted it owns them. Those of a
    /// generator are stored as they are made, so that it needs memory for one at a time.
    pub(crate) fn encode(
        &self,
        result: Bound<'_, PyAny>,
        owner: ProcessId,
        count: u32,
        name: &str,
    ) -> Result<Vec<Encoded>, Unreturned> {
        let hooks = self.hooks.bind(result.py());
        if count == 1 && !self.is_generator(&result, count) {
            let encoded = values::encode(&self.session, &result, owner).or_else(|error| {
                hooks.call_method1("explain_unpicklable", (&result, name))?;
                Err(error)
            });
            return Ok(vec![encoded?]);
        }
        let parts = hooks.call_method1("unpack_returns", (result, count, name))?;
        let mut made = Vec::with_capacity(count as usize);
        for part in parts.try_iter()? {
            match part.and_then(|part| values::encode(&self.session, &part, owner)) {
                Ok(value) => made.push(value),
                Err(error) => return Err(Unreturned { error, is_lost: false, made }),
            }
        }
        Ok(made)
    }
}
