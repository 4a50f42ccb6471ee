//! Calls that yield: what a generator makes becomes items, one after the other.

use std::sync::Arc;

use oxiray_wire::frame::{FailureCode, MOST_ITEMS, Returns};
use oxiray_worker::{Call, Content, Failure, Flow, ObjectKey, Raised, Waited};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

use crate::errors::system_error;
use crate::execute::Worker;
use crate::values;

/// Yields everything that a generator makes, until it ends or nobody wants more.
pub(crate) fn iterate<'py>(
    py: Python<'py>,
    worker: &Worker,
    call: &Call,
    made: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let generator = worker.hooks.bind(py).call_method1("as_generator", (made, kind(call)))?;
    call.begin_items();
    for item in generator.try_iter()? {
        let mut flow = yield_value(worker, call, &item?)?;
        while flow == Flow::Full {
            flow = wait(py, call)?;
        }
        match flow {
            Flow::On | Flow::Full => {}
            Flow::NoReader => {
                generator.call_method0("close")?;
                break;
            }
            Flow::Cancelled => {
                generator.call_method0("close")?;
                return Err(PyKeyboardInterrupt::new_err("the call was cancelled"));
            }
        }
    }
    Ok(py.None().into_bound(py))
}

/// What it was declared with.
pub(crate) fn kind(call: &Call) -> &'static str {
    if call.returns == Returns::Gathered { "dynamic" } else { "streaming" }
}

/// Yields one value.
pub(crate) fn yield_value(
    worker: &Worker,
    call: &Call,
    value: &Bound<'_, PyAny>,
) -> PyResult<Flow> {
    if call.yielded() >= MOST_ITEMS {
        return Err(PyValueError::new_err(format!("a generator can yield {MOST_ITEMS} values")));
    }
    let (content, contained) = values::encode(&worker.session, value, call.giver)?;
    Ok(call.yield_item(&content, contained))
}

/// Sleeps until the reader has read more.
fn wait(py: Python<'_>, call: &Call) -> PyResult<Flow> {
    let mut raised = None;
    let reader = call.reader();
    match py.detach(|| reader.wait(|| values::raises_signal(&mut raised))) {
        Waited::Done | Waited::TimedOut | Waited::Interrupted => {}
        Waited::Stopped(reason) => return Err(system_error(py, &reason)),
    }
    raised.map_or_else(|| Ok(call.flow()), Err)
}

/// What a call returns that has yielded everything: nothing, or the references to it.
pub(crate) fn completion(
    py: Python<'_>,
    worker: &Worker,
    call: &Call,
) -> PyResult<(Content, Vec<ObjectKey>)> {
    let value = match call.returns {
        Returns::Gathered => {
            // What an actor yields to itself it has to hear before it refers to it.
            worker.session.runtime.look(|_| true);
            let ids: Vec<Vec<u8>> = call.items().map(|id| id.0.to_vec()).collect();
            worker.hooks.bind(py).call_method1("gathered", (ids, call.giver.0))?
        }
        Returns::Stream { .. } | Returns::Fixed(_) => py.None().into_bound(py),
    };
    values::encode(&worker.session, &value, call.giver)
}

/// Ends a call whose generator raised: that is its last item.
pub(crate) fn fail(py: Python<'_>, worker: &Worker, call: Call, name: &Arc<str>, raised: Raised) {
    let failure = Failure::new(FailureCode::TaskError, String::new(), raised.data.clone());
    call.yield_item(&Content::Failed(Arc::new(failure)), Vec::new());
    match completion(py, worker, &call) {
        Ok(value) => call.fail_as_item(name, &raised, value),
        Err(_) => call.fail(name, raised),
    }
}
