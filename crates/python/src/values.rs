//! Python values to bytes and back.
//!
//! The first byte says how: a few types natively, everything else by pickle
//! (protocol 5), whose large buffers stand apart so that a reader can look at
//! them where they are:
//!
//! ```text
//! 0 none  1 true  2 false  3 int (8)  4 float (8)  5 str  6 bytes   the rest: the value
//! 7 pickle                                                        the rest: the pickle
//! 8 pickle with buffers: 7 pad, count u64, pickle len u64, (offset u64, len u64) each,
//!   the pickle, then the buffers, each at a multiple of 64 from the first byte
//! 9 place of a reference: index u32 (only among arguments)
//! ```

use std::sync::Arc;

use oxiray_ids::{Origin, ProcessId};
use oxiray_wire::control::{Lacking, Refused};
use oxiray_wire::frame::FailureCode;
use oxiray_worker::{Content, Look, NoRoom, ObjectKey, SmallBytes, Unseen};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyType};

use crate::buffers::{Contiguous, StoreView};
use crate::errors::{engine_error, session_ended, system_error};
use crate::refs::collecting;
use crate::session::Session;

/// Values up to this size travel inside messages; larger ones through the store.
pub(crate) const INLINE_MAX: usize = 100 * 1024;

const NONE: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const INT: u8 = 3;
const FLOAT: u8 = 4;
const STR: u8 = 5;
const BYTES: u8 = 6;
const PICKLE: u8 = 7;
const PICKLE_BUFFERS: u8 = 8;
/// Place of a reference among arguments.
pub(crate) const PLACE: u8 = 9;

const ALIGN: usize = 64;

/// A value made ready to be written somewhere.
enum Encoded {
    /// A tag and borrowed bytes.
    Tagged(u8, Contiguous),
    /// A text too large to copy twice.
    Text(Py<PyString>),
    /// A pickle and its buffers.
    Buffers(Vec<u8>, Contiguous, Vec<Contiguous>),
}

/// Serialises `value`: its content, in the store if it is large, for `owner` to
/// own; and the references inside it, each counted once.
pub(crate) fn encode(
    session: &Arc<Session>,
    value: &Bound<'_, PyAny>,
    owner: ProcessId,
) -> PyResult<(Content, Vec<ObjectKey>)> {
    let mut small = SmallBytes::new();
    if encode_scalar(value, &mut small)? {
        return Ok((Content::Inline(small), Vec::new()));
    }
    let (encoded, contained) = collecting(|| prepare(value));
    match encoded.and_then(|encoded| place(session, value.py(), encoded, owner)) {
        Ok(content) => Ok((content, contained)),
        Err(error) => {
            session.runtime.release(contained);
            Err(error)
        }
    }
}

/// Appends a value of a native type to `out`; `false`: it is of another type.
pub(crate) fn encode_scalar(value: &Bound<'_, PyAny>, out: &mut SmallBytes) -> PyResult<bool> {
    if value.is_none() {
        out.push(NONE);
    } else if value.is_exact_instance_of::<PyInt>() {
        let Ok(number) = value.extract::<i64>() else {
            return Ok(false);
        };
        out.push(INT);
        out.extend_from_slice(&number.to_le_bytes());
    } else if let Ok(text) = value.cast_exact::<PyString>() {
        let Ok(text) = text.to_str() else {
            return Ok(false);
        };
        if text.len() >= INLINE_MAX {
            return Ok(false);
        }
        out.push(STR);
        out.extend_from_slice(text.as_bytes());
    } else if let Ok(float) = value.cast_exact::<PyFloat>() {
        out.push(FLOAT);
        out.extend_from_slice(&float.value().to_le_bytes());
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        if bytes.as_bytes().len() >= INLINE_MAX {
            return Ok(false);
        }
        out.push(BYTES);
        out.extend_from_slice(bytes.as_bytes());
    } else if let Ok(truth) = value.cast_exact::<PyBool>() {
        out.push(if truth.is_true() { TRUE } else { FALSE });
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn prepare(value: &Bound<'_, PyAny>) -> PyResult<Encoded> {
    let py = value.py();
    if value.is_exact_instance_of::<PyBytes>() {
        return Ok(Encoded::Tagged(BYTES, Contiguous::new(value)?));
    }
    if let Ok(text) = value.cast_exact::<PyString>()
        && text.to_str().is_ok()
    {
        return Ok(Encoded::Text(text.clone().unbind()));
    }
    let buffers = PyList::empty(py);
    static DUMPS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let pickle = DUMPS.import(py, "oxiray._serialization", "dumps")?.call1((value, &buffers))?;
    let pickle = Contiguous::new(&pickle)?;
    if buffers.is_empty() {
        return Ok(Encoded::Tagged(PICKLE, pickle));
    }
    let buffers: Vec<Contiguous> = buffers
        .iter()
        .map(|buffer| Contiguous::new(&buffer.call_method0("raw")?))
        .collect::<PyResult<_>>()?;
    let mut header = vec![0; 8];
    header[0] = PICKLE_BUFFERS;
    header.extend_from_slice(&(buffers.len() as u64).to_le_bytes());
    header.extend_from_slice(&(pickle.len() as u64).to_le_bytes());
    let mut at = 24 + 16 * buffers.len() + pickle.len();
    for buffer in &buffers {
        at = at.next_multiple_of(ALIGN);
        header.extend_from_slice(&(at as u64).to_le_bytes());
        header.extend_from_slice(&(buffer.len() as u64).to_le_bytes());
        at += buffer.len();
    }
    Ok(Encoded::Buffers(header, pickle, buffers))
}

impl Encoded {
    /// Its parts with the place of each.
    fn parts<'a>(&'a self, py: Python<'a>) -> PyResult<Vec<(usize, &'a [u8])>> {
        Ok(match self {
            Encoded::Tagged(tag, bytes) => vec![(0, std::slice::from_ref(tag)), (1, bytes.bytes())],
            Encoded::Text(text) => vec![(0, &[STR]), (1, text.bind(py).to_str()?.as_bytes())],
            Encoded::Buffers(header, pickle, buffers) => {
                let mut parts = vec![(0, header.as_slice()), (header.len(), pickle.bytes())];
                let mut at = header.len() + pickle.len();
                for buffer in buffers {
                    at = at.next_multiple_of(ALIGN);
                    parts.push((at, buffer.bytes()));
                    at += buffer.len();
                }
                parts
            }
        })
    }
}

/// Writes a prepared value where it belongs.
fn place(
    session: &Arc<Session>,
    py: Python<'_>,
    encoded: Encoded,
    owner: ProcessId,
) -> PyResult<Content> {
    let parts = encoded.parts(py)?;
    let len = parts.last().map_or(0, |(at, bytes)| at + bytes.len());
    if len <= INLINE_MAX {
        let mut bytes = SmallBytes::with_capacity(len);
        for (at, part) in parts {
            bytes.resize(at, 0);
            bytes.extend_from_slice(part);
        }
        return Ok(Content::Inline(bytes));
    }
    let runtime = &session.runtime;
    let (mut raised, mut collected) = (None, false);
    let placed = py.detach(|| {
        let interrupted = || {
            // The store is full: garbage may be what holds it.
            if !std::mem::replace(&mut collected, true) {
                let _ = Python::attach(|py| py.import("gc")?.call_method0("collect").map(drop));
            }
            raises_signal(&mut raised)
        };
        let room = runtime.allocate(len as u64, owner, interrupted)?;
        room.fill(&parts);
        let (origin, len) = room.seal();
        Ok(Content::Stored { origin, len })
    });
    placed.map_err(|no_room| match (no_room, raised) {
        (_, Some(error)) => error,
        (NoRoom::Refused(refused), None) => refusal(py, &refused),
        (NoRoom::Ended | NoRoom::Interrupted, None) => session_ended(py),
    })
}

fn refusal(py: Python<'_>, refused: &Refused) -> PyErr {
    engine_error(py, refused.failure_code(), &refused.text, &[])
}

/// Why a value cannot be had.
pub(crate) enum Unread {
    /// The node where it was has left: its owner may make it again. Else this error.
    NodeLeft(PyErr),
    /// For good.
    Failed(PyErr),
    /// The time was up.
    TimedOut,
}

impl From<Unread> for PyErr {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::NodeLeft(error) | Unread::Failed(error) => error,
            Unread::TimedOut => {
                pyo3::exceptions::PyTimeoutError::new_err("the value was not there in time")
            }
        }
    }
}

/// Looks at an object of the store, wherever it is.
pub(crate) fn look_at(
    py: Python<'_>,
    session: &Session,
    origin: Origin,
    len: u64,
    deadline: Option<u64>,
) -> Result<Arc<Look>, Unread> {
    let mut raised = None;
    let looked = py.detach(|| {
        let interrupted = || raises_signal(&mut raised);
        session.runtime.look_at(origin, len, deadline, interrupted)
    });
    looked.map(Arc::new).map_err(|unseen| match (unseen, raised) {
        (_, Some(error)) => Unread::Failed(error),
        (Unseen::Refused(refused), None) if refused.lacking() == Lacking::Node => {
            Unread::NodeLeft(refusal(py, &refused))
        }
        (Unseen::Refused(refused), None) => Unread::Failed(refusal(py, &refused)),
        (Unseen::Gone, None) => {
            let message = "it was freed, or the process that owned it has died";
            Unread::Failed(engine_error(py, FailureCode::ObjectLost, message, &[]))
        }
        (Unseen::TimedOut, None) => Unread::TimedOut,
        (Unseen::Ended | Unseen::Interrupted, None) => Unread::Failed(session_ended(py)),
    })
}

/// Whether a signal handler of Python raised, and what.
pub(crate) fn raises_signal(raised: &mut Option<PyErr>) -> bool {
    *raised = Python::attach(|py| py.check_signals().err());
    raised.is_some()
}

/// Lets go of values that were encoded for nothing.
pub(crate) fn discard(session: &Arc<Session>, values: Vec<(Content, Vec<ObjectKey>)>) {
    for (content, contained) in values {
        // As an object that nobody keeps: its end frees extent and references.
        let key = session.runtime.put(content, contained);
        session.runtime.release([key]);
    }
}

/// Where serialised bytes are.
pub(crate) enum Source<'a> {
    /// In a message.
    Inline(&'a [u8]),
    /// In the store, where it is looked at.
    Looked(Arc<Look>),
}

/// Makes the Python value of serialised bytes.
pub(crate) fn decode<'py>(py: Python<'py>, source: Source<'_>) -> PyResult<Bound<'py, PyAny>> {
    let (bytes, look) = match &source {
        Source::Inline(bytes) => (*bytes, None),
        Source::Looked(look) => (look.bytes(), Some(look)),
    };
    let (tag, rest) = bytes.split_first().ok_or_else(|| damaged(py))?;
    let eight = || rest.try_into().map_err(|_| damaged(py));
    Ok(match *tag {
        NONE => py.None().into_bound(py),
        TRUE => PyBool::new(py, true).to_owned().into_any(),
        FALSE => PyBool::new(py, false).to_owned().into_any(),
        INT => i64::from_le_bytes(eight()?).into_pyobject(py)?.into_any(),
        FLOAT => PyFloat::new(py, f64::from_le_bytes(eight()?)).into_any(),
        STR => {
            let text = std::str::from_utf8(rest).map_err(|_| damaged(py))?;
            PyString::new(py, text).into_any()
        }
        BYTES => PyBytes::new(py, rest).into_any(),
        PICKLE => {
            let pickle = part(py, look, bytes, 1, rest.len())?;
            loads(py)?.call1((pickle, py.None()))?
        }
        PICKLE_BUFFERS => {
            let word = |at: usize| -> PyResult<usize> {
                let word = bytes.get(at..at + 8).ok_or_else(|| damaged(py))?;
                Ok(u64::from_le_bytes(word.try_into().expect("eight bytes")) as usize)
            };
            let (count, pickle_len) = (word(8)?, word(16)?);
            let buffers = PyList::empty(py);
            for index in 0..count {
                let (at, len) = (word(24 + 16 * index)?, word(32 + 16 * index)?);
                buffers.append(part(py, look, bytes, at, len)?)?;
            }
            let start = 24 + 16 * count;
            let pickle = part(py, look, bytes, start, pickle_len)?;
            loads(py)?.call1((pickle, buffers))?
        }
        _ => return Err(damaged(py)),
    })
}

/// Part of a value, as an object that Python can read: a view where the value
/// is in the store, a copy where it is not.
fn part<'py>(
    py: Python<'py>,
    look: Option<&Arc<Look>>,
    bytes: &[u8],
    at: usize,
    len: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let part = at.checked_add(len).and_then(|end| bytes.get(at..end)).ok_or_else(|| damaged(py))?;
    Ok(match look {
        None => PyBytes::new(py, part).into_any(),
        Some(look) => Bound::new(py, StoreView::new(look, at, len))?.into_any(),
    })
}

fn loads<'a, 'py>(py: Python<'py>) -> PyResult<&'a Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS.import(py, "oxiray._serialization", "loads")
}

fn damaged(py: Python<'_>) -> PyErr {
    system_error(py, "the bytes of a value are damaged")
}

/// Whether an object is of exactly this type, by pointer.
pub(crate) fn is_type<T: pyo3::PyTypeInfo>(py: Python<'_>, object: &Bound<'_, PyAny>) -> bool {
    let expected: Bound<'_, PyType> = T::type_object(py);
    object.get_type().is(&expected)
}
