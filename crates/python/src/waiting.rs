//! Waiting for objects: what a thread sleeps for is known to who asks, and a timeout says what it
//! waited for.

use oxiray_wire::frame::FailureCode;
use oxiray_words::{listed, plural};
use oxiray_worker::{Missing, ObjectKey, State, Wait};
use pyo3::prelude::*;

use crate::access::sleep_for;
use crate::errors::engine_error;
use crate::session::Session;

/// Names of tasks that a timeout says.
const MOST_NAMES: usize = 3;

/// Waits in `what` until `look` finds all, or any, of these objects; whether it did in time.
pub(crate) fn wait_for_objects(
    py: Python<'_>,
    session: &Session,
    deadline: Option<u64>,
    what: &str,
    keys: &[ObjectKey],
    any: bool,
    mut look: impl FnMut(&mut State) -> bool + Send,
) -> PyResult<bool> {
    let (mut looks, mut name) = (0, None);
    let done = |state: &mut State| {
        if look(state) {
            return true;
        }
        looks += 1;
        // Most sleeps are over with the first news, and cost nothing here.
        if looks == 2 {
            name = Some(state.begin_await(keys, any));
        }
        false
    };
    let waited = sleep_for(py, session, deadline, what, done);
    if let Some(name) = name {
        session.runtime.lock().end_await(name);
    }
    waited
}

/// The error of a `get` whose time is over.
pub(crate) fn timed_out(py: Python<'_>, session: &Session, keys: &[ObjectKey]) -> PyErr {
    let missing = session.runtime.lock().owner.missing(keys);
    let shape = missing.chain.last().and_then(|reason| match reason.wait {
        Wait::Worker(shape) => Some(shape),
        _ => None,
    });
    let why = py.detach(|| session.runtime.why_no_worker(shape?)).unwrap_or_default();
    engine_error(py, FailureCode::GetTimeout, &words(&missing, keys.len(), &why), &[])
}

fn words(missing: &Missing, asked: usize, why: &str) -> String {
    let first = missing.first.map(|object| object.to_string()).unwrap_or_default();
    let mut text = match (missing.count, asked) {
        // It came just now.
        (0, _) => return "get() timed out: the values were not there in time".into(),
        (1, 1) => format!("get() timed out: ObjectRef({first}) is not there in time"),
        (count, asked) => {
            format!(
                "get() timed out: {count} of {} are not there in time",
                plural(asked as u64, "value")
            )
        }
    };
    let name = |(name, count): &(String, usize)| match count {
        1 => name.clone(),
        count => format!("{name} ({count})"),
    };
    let names: Vec<String> = missing.makers.iter().map(name).collect();
    if asked > 1 && !names.is_empty() {
        text.push_str(&format!(", of {}", listed(&names, MOST_NAMES)));
    }
    text.push('.');
    for (at, reason) in missing.chain.iter().enumerate() {
        let (name, id) = (&reason.name, reason.id);
        text.push_str(&match at {
            0 if asked > 1 => format!(" The first: {name} ({id}) "),
            0 => format!(" {name} ({id}) "),
            _ => format!("{name}, which "),
        });
        text.push_str(&match reason.wait {
            Wait::Nothing => "is about to go on".into(),
            Wait::Running(_) => "runs".into(),
            Wait::Turn(_) => "is next in its worker".into(),
            Wait::Argument { .. } if at + 1 < missing.chain.len() => {
                "waits for its argument, to be returned by ".into()
            }
            Wait::Argument { object, .. } => format!("waits for its argument ObjectRef({object})"),
            Wait::News => "waits for an argument whose node could not be reached".into(),
            Wait::Memory => {
                "was ended because memory ran out, and is tried again after a pause".into()
            }
            Wait::Worker(_) if why.is_empty() => "waits for a worker".into(),
            Wait::Worker(_) => format!("waits for a worker: {why}"),
            Wait::Actor(actor) => format!("waits for its actor {actor}, which is not there yet"),
            Wait::AtActor(actor, _) => {
                format!("is at its actor {actor}, and runs there or is next")
            }
            Wait::Construction(actor) => format!("makes the actor {actor}"),
        });
    }
    if !missing.chain.is_empty() {
        text.push_str("; `oxiray why` says more.");
    }
    text
}
