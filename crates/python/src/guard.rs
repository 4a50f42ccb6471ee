//! The boundary between Python and the engine: a panic becomes a `RaySystemError`.
//!
//! PyO3 alone would raise a `PanicException`, which `except Exception` lets pass, and leave a
//! session behind that may do anything. See [`oxiray_worker::breakdown`] for what follows.

use oxiray_worker::breakdown;
use pyo3::prelude::*;

use crate::errors::system_error;
use crate::session;

/// Does what Python asks of the engine.
pub(crate) fn guarded<R>(py: Python<'_>, body: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    if breakdown::was_there()
        && let Some(session) = session::existing()
        && let Some(text) = session.runtime.broken()
    {
        return Err(system_error(py, text));
    }
    breakdown::caught(body).unwrap_or_else(|said| {
        let session = session::existing();
        let text = session.as_ref().map_or(&*said, |session| session.runtime.break_down(&said));
        Err(system_error(py, text))
    })
}

/// For tests: a fault of the engine in this call, or in what its threads do next. In every build,
/// so that what is tested is what is shipped; who can call it can end the process as well.
#[pyfunction]
pub(crate) fn fail_for_test(py: Python<'_>, place: &str) -> PyResult<()> {
    guarded(py, || {
        let session = session::current(py)?;
        match place {
            "call" => {
                let _held = session.runtime.lock();
                panic!("a fault for a test");
            }
            _ => session.runtime.damage(),
        }
        Ok(())
    })
}
