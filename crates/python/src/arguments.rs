//! The arguments of a call that came in: see [`crate::submit`] for their bytes.

use oxiray_wire::frame::{Body, Task};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::session::Session;
use crate::values::{self, PLACE, Source, Unread};

/// Positional and keyword arguments.
pub(crate) type Arguments<'py> = (Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>);

/// Why arguments cannot be had.
pub(crate) struct Unreadable {
    pub(crate) error: PyErr,
    /// One was lost with its node: the owner has it made again, or says why not.
    pub(crate) is_lost: bool,
}

impl From<PyErr> for Unreadable {
    fn from(error: PyErr) -> Self {
        Self { error, is_lost: false }
    }
}

/// Reads the arguments of a task.
pub(crate) fn read<'py>(
    py: Python<'py>,
    session: &Session,
    task: &Task<'_>,
) -> Result<Arguments<'py>, Unreadable> {
    let mut reader = Reader { rest: task.args };
    let (positional, keywords) = (reader.count()?, reader.count()?);
    if positional == 0 && keywords == 0 {
        return Ok((PyTuple::empty(py), None));
    }
    let mut args = Vec::with_capacity(positional.min(1024));
    for _ in 0..positional {
        args.push(value(py, session, task, reader.bytes()?)?);
    }
    let args = PyTuple::new(py, args)?;
    if keywords == 0 {
        return Ok((args, None));
    }
    let kwargs = PyDict::new(py);
    for _ in 0..keywords {
        let name = std::str::from_utf8(reader.bytes()?).map_err(|_| malformed())?;
        kwargs.set_item(name, value(py, session, task, reader.bytes()?)?)?;
    }
    Ok((args, Some(kwargs)))
}

fn value<'py>(
    py: Python<'py>,
    session: &Session,
    task: &Task<'_>,
    bytes: &[u8],
) -> Result<Bound<'py, PyAny>, Unreadable> {
    let Some((&PLACE, index)) = bytes.split_first() else {
        return Ok(values::decode(py, Source::Inline(bytes))?);
    };
    let index = u32::from_le_bytes(index.try_into().map_err(|_| malformed())?);
    let source = match task.values.get(index as usize).map(|value| value.body) {
        Some(Body::Inline(bytes)) => Source::Inline(bytes),
        Some(Body::Stored { origin, len }) => {
            let look = values::look_at(py, session, origin, len, None).map_err(|unread| {
                let is_lost = matches!(unread, Unread::NodeLeft(_));
                Unreadable { error: unread.into(), is_lost }
            })?;
            Source::Looked(look)
        }
        _ => return Err(malformed().into()),
    };
    Ok(values::decode(py, source)?)
}

fn malformed() -> PyErr {
    PyRuntimeError::new_err("the arguments of the task are damaged")
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn count(&mut self) -> PyResult<usize> {
        let (count, rest) = self.rest.split_first_chunk().ok_or_else(malformed)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*count) as usize)
    }

    fn bytes(&mut self) -> PyResult<&'a [u8]> {
        let len = self.count()?;
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or_else(malformed)?;
        self.rest = rest;
        Ok(bytes)
    }
}
