//! The arguments of a call that came in: see [`crate::submit`] for their bytes.

use oxiray_wire::frame::{Body, Value};
use oxiray_worker::Call;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::returns::Unreturned;
use crate::session::Session;
use crate::values::{self, PLACE, Source, Unread};

/// Positional and keyword arguments.
pub(crate) type Arguments<'py> = (Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>);

/// Reads the arguments of a call.
pub(crate) fn read<'py>(
    py: Python<'py>,
    session: &Session,
    call: &Call,
) -> Result<Arguments<'py>, Unreturned> {
    let mut reader = Reader { rest: call.args() };
    let (positional, keywords) = (reader.count()?, reader.count()?);
    if positional == 0 && keywords == 0 {
        return Ok((PyTuple::empty(py), None));
    }
    let values = call.values();
    let mut args = Vec::with_capacity(positional.min(1024));
    for _ in 0..positional {
        args.push(value(py, session, &values, reader.bytes()?)?);
    }
    let args = PyTuple::new(py, args)?;
    if keywords == 0 {
        return Ok((args, None));
    }
    let kwargs = PyDict::new(py);
    for _ in 0..keywords {
        let name = std::str::from_utf8(reader.bytes()?).map_err(|_| malformed())?;
        kwargs.set_item(name, value(py, session, &values, reader.bytes()?)?)?;
    }
    Ok((args, Some(kwargs)))
}

fn value<'py>(
    py: Python<'py>,
    session: &Session,
    values: &[Value<'_>],
    bytes: &[u8],
) -> Result<Bound<'py, PyAny>, Unreturned> {
    let Some((&PLACE, index)) = bytes.split_first() else {
        return Ok(values::decode(py, Source::Inline(bytes))?);
    };
    let index = u32::from_le_bytes(index.try_into().map_err(|_| malformed())?);
    let source = match values.get(index as usize).map(|value| value.body) {
        Some(Body::Inline(bytes)) => Source::Inline(bytes),
        Some(Body::Stored { origin, len }) => {
            let look = values::look_at(py, session, origin, len, None).map_err(|unread| {
                let is_lost = matches!(unread, Unread::NodeLeft(_));
                Unreturned { is_lost, ..PyErr::from(unread).into() }
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
