//! What the process that workers are forked from asks of the system.

use pyo3::prelude::*;

/// What a descendant leaves behind when it ends becomes a child of this process.
#[pyfunction]
pub(crate) fn adopt_orphans() -> PyResult<()> {
    Ok(oxiray_sys::process::adopt_orphans()?)
}
