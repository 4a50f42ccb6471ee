//! What the engine says went wrong, as exceptions: `oxiray._errors` makes them.

use oxiray_wire::frame::FailureCode;
use oxiray_worker::Failure;
use pyo3::prelude::*;

/// The exception of a failure; `data` is what the table of failures says.
pub(crate) fn engine_error(py: Python<'_>, code: FailureCode, message: &str, data: &[u8]) -> PyErr {
    let about = (code.exception(), code.about().name(), message, data);
    let made =
        py.import("oxiray._errors").and_then(|errors| errors.call_method1("engine_error", about));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The exception of an object that has no value.
pub(crate) fn raised(py: Python<'_>, failure: &Failure) -> PyErr {
    failure.see();
    if failure.code == FailureCode::TaskError {
        let errors = py.import("oxiray._errors");
        let parts = (&*failure.data, &*failure.message);
        let error = errors.and_then(|errors| errors.call_method1("rebuild", parts));
        return error.map_or_else(|error| error, PyErr::from_value);
    }
    let (path, words) = failure.path();
    let error = engine_error(py, failure.code, words, &failure.data);
    let Some(name) = path.first() else { return error };
    // Who takes what failed has failed as a task, whatever it was: as in Ray.
    let parts = (error.value(py), name, &*failure.message);
    let made =
        py.import("oxiray._errors").and_then(|errors| errors.call_method1("handed_on", parts));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The engine itself cannot go on.
pub(crate) fn system_error(py: Python<'_>, message: &str) -> PyErr {
    engine_error(py, FailureCode::System, message, &[])
}

/// The error of waiting for an answer that nobody will give any more.
pub(crate) fn session_ended(py: Python<'_>) -> PyErr {
    system_error(py, "the session has ended")
}

/// What is said of an error that went with its last reference; `None`: nothing is to be said.
pub(crate) fn unhandled_text(py: Python<'_>, failure: &Failure) -> Option<String> {
    let errors = py.import("oxiray._errors").ok()?;
    let about = (failure.code.about().name(), &*failure.message, &*failure.data);
    errors.call_method1("unhandled", about).ok()?.extract().ok()?
}

/// The table of failures: name, number, Ray's word for it, exception, what its data is.
#[pyfunction]
pub(crate) fn failures() -> Vec<(String, u8, &'static str, &'static str, &'static str)> {
    let row = |code: &FailureCode| {
        let (word, about) = (code.error_type(), code.about().name());
        (format!("{code:?}"), *code as u8, word, code.exception(), about)
    };
    FailureCode::ALL.iter().map(row).collect()
}
