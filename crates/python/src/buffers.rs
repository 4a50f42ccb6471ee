//! Looking at shared memory from Python, and at Python's buffers from Rust.
//! All of this crate's unsafe code is here.

#![expect(unsafe_code, reason = "the buffer protocol is a C interface")]

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use oxiray_sys::memory::PrivateMapping;
use oxiray_worker::Look;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// A read-only view of part of an object in the store, which stays in memory
/// while this lives, whatever becomes of its references.
#[pyclass(frozen, module = "oxiray")]
pub(crate) struct StoreView {
    look: Arc<Look>,
    at: usize,
    len: usize,
}

impl StoreView {
    /// Looks at `len` bytes from `at`, which lie within the object.
    pub(crate) fn new(look: &Arc<Look>, at: usize, len: usize) -> Self {
        Self { look: look.clone(), at, len }
    }
}

#[pymethods]
impl StoreView {
    /// # Safety
    /// Called by Python with a valid `view`.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("objects in the store are read-only"));
        }
        let this = slf.get();
        let bytes = &this.look.bytes()[this.at..this.at + this.len];
        // SAFETY: `view` is Python's to fill; the bytes stay mapped and unchanged
        // while `slf` lives, and the filled view keeps `slf` alive.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                bytes.as_ptr().cast_mut().cast::<c_void>(),
                bytes.len() as ffi::Py_ssize_t,
                1,
                flags,
            )
        };
        if filled == -1 { Err(PyErr::fetch(slf.py())) } else { Ok(()) }
    }

    fn __len__(&self) -> usize {
        self.len
    }

    /// The same bytes, not copied, to write to: what is written stays in this process.
    fn private(&self) -> PyResult<PrivateView> {
        let mapping = self.look.private(self.at, self.len)?;
        Ok(PrivateView { _look: self.look.clone(), mapping })
    }
}

/// Part of an object in the store, to write to in private.
#[pyclass(frozen, module = "oxiray")]
pub(crate) struct PrivateView {
    /// What was not written to is read from the object.
    _look: Arc<Look>,
    mapping: PrivateMapping,
}

#[pymethods]
impl PrivateView {
    /// # Safety
    /// Called by Python with a valid `view`.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let mapping = &slf.get().mapping;
        // SAFETY: `view` is Python's to fill; the bytes stay mapped while `slf`
        // lives, and the filled view keeps `slf` alive. Rust never looks at them.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                mapping.start().cast::<c_void>(),
                mapping.len() as ffi::Py_ssize_t,
                0,
                flags,
            )
        };
        if filled == -1 { Err(PyErr::fetch(slf.py())) } else { Ok(()) }
    }

    fn __len__(&self) -> usize {
        self.mapping.len()
    }
}

/// Bytes of a Python buffer, contiguous, that stay while this lives.
pub(crate) struct Contiguous(PyBuffer<u8>);

impl Contiguous {
    /// Takes hold of an object's buffer.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::<u8>::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("the buffer is not contiguous"));
        }
        Ok(Self(buffer))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len_bytes()
    }

    /// The bytes. Python code that writes to them meanwhile makes a mixture of
    /// old and new, as it would with any other copy made outside of its control.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.0.len_bytes() == 0 {
            return &[];
        }
        // SAFETY: contiguous, as checked, and held by the buffer until drop.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}
