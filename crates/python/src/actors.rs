//! `ActorRef`: a counted reference to an actor. `ActorCall`: what stands at
//! `actor.method.remote`.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use oxiray_events::Label;
use oxiray_ids::{ActorId, FunctionId, ProcessId, TaskId};
use oxiray_wire::control::{self, NamedActor, to_node};
use oxiray_wire::frame::{FailureCode, RefName, Returns};
use oxiray_worker::{CallOrder, ObjectKey, Target, TaskSpec};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use xxhash_rust::xxh3::xxh3_128;

use crate::access;
use crate::call_site;
use crate::errors::{engine_error, session_ended};
use crate::groups;
use crate::guard::guarded;
use crate::refs::{Reduced, name_for_pickle};
use crate::running;
use crate::session::{self, Session};
use crate::submit::{Arguments, Arity, given_back, returned, takes};
use crate::values::raises_signal;

/// One count of an actor's handle.
struct Handle {
    session: Arc<Session>,
    actor: ActorId,
    key: ObjectKey,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.session.release([self.key]);
    }
}

/// A counted reference to an actor; the actor ends when the last one goes.
#[pyclass(frozen, weakref, module = "oxiray")]
pub(crate) struct ActorRef(Arc<Handle>);

#[pymethods]
impl ActorRef {
    fn hex(&self) -> String {
        self.0.actor.to_string()
    }

    fn binary<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.actor.0)
    }

    /// `function` has its class with it; `given` is another name that it was given.
    /// `variant` is the method with options that its worker has to know.
    #[pyo3(signature = (name, function, given, num_returns, retries, recorded, *, ahead, lane, order, max_pending, variant, arity, bind))]
    #[expect(clippy::too_many_arguments, reason = "arguments of one Python caller")]
    fn method(
        &self,
        name: &str,
        function: &str,
        given: Option<&str>,
        num_returns: &Bound<'_, PyAny>,
        retries: i32,
        recorded: bool,
        ahead: u32,
        lane: u16,
        order: &str,
        max_pending: Option<usize>,
        variant: Option<&[u8]>,
        arity: Arity,
        bind: Option<Py<PyAny>>,
    ) -> PyResult<ActorCall> {
        let (handle, name, function) = (self.0.clone(), name.into(), Arc::<str>::from(function));
        let given = given.map_or_else(|| function.clone(), Into::into);
        let order = match order {
            "all" => CallOrder::All,
            "lane" => CallOrder::Lane,
            "free" => CallOrder::Free,
            other => return Err(PyValueError::new_err(format!("no order of calls: {other}"))),
        };
        let variant = variant.map_or(FunctionId::NIL, |payload| {
            let variant = FunctionId(xxh3_128(payload).to_le_bytes());
            handle.session.runtime.ship_function(variant, payload);
            variant
        });
        let target = Target::Method { actor: handle.actor, lane, order, variant };
        Ok(ActorCall {
            handle,
            name,
            given,
            function,
            target,
            returns: given_back(num_returns, ahead)?,
            retries,
            recorded,
            max_pending,
            arity,
            bind,
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.actor.hash(&mut hasher);
        hasher.finish()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<ActorRef>().is_ok_and(|other| other.get().0.actor == self.0.actor)
    }

    fn __repr__(&self) -> String {
        format!("ActorRef({})", self.0.actor)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let name = name_for_pickle(py, &self.0.session, self.0.key)?;
        let rebuild = py.import("oxiray._native")?.getattr("rebuild_actor")?;
        Ok((rebuild, (PyBytes::new(py, &self.0.actor.0), name.owner.0)))
    }
}

/// Unpickles a reference to an actor.
#[pyfunction]
pub(crate) fn rebuild_actor(py: Python<'_>, actor: &[u8], owner: u64) -> PyResult<ActorRef> {
    guarded(py, || {
        let session = session::current(py)?;
        let actor = ActorId::from_slice(actor)
            .ok_or_else(|| PyValueError::new_err("not the bytes of an actor's id"))?;
        let id = oxiray_worker::handle_object(actor);
        let key = session.runtime.meet_actor(actor, RefName { id, owner: ProcessId(owner) });
        Ok(ActorRef(Arc::new(Handle { session, actor, key })))
    })
}

/// What stands at `actor.method.remote`: calling it submits one call.
#[pyclass(frozen, module = "oxiray")]
pub(crate) struct ActorCall {
    handle: Arc<Handle>,
    name: Arc<str>,
    /// What people call it: the function, unless it was given another name.
    given: Arc<str>,
    function: Arc<str>,
    target: Target,
    returns: Returns,
    retries: i32,
    recorded: bool,
    /// Calls that may be under way from this process.
    max_pending: Option<usize>,
    arity: Arity,
    /// Raises what a wrong call of the method itself would; asked in case of doubt.
    bind: Option<Py<PyAny>>,
}

impl ActorCall {
    fn check_pending(&self, py: Python<'_>, limit: usize) -> PyResult<()> {
        let Handle { session, actor, .. } = &*self.handle;
        if session.runtime.lock().owner.pending_calls(*actor) < limit {
            return Ok(());
        }
        let message = format!(
            "{} could not be called: {limit} calls to the actor {actor} are under way from this \
             process, as many as the actor's option max_pending_calls allows. Wait for some of \
             them, or raise the limit.",
            self.function
        );
        let exceptions = py.import("oxiray.exceptions")?;
        let error = exceptions.getattr("PendingCallsLimitExceeded")?.call1((message,))?;
        Err(PyErr::from_value(error))
    }
}

#[pymethods]
impl ActorCall {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(py, || {
            let Handle { session, actor, key } = &*self.handle;
            if !session.is_current() {
                return Err(session::not_current(py, session, &format!("Actor {actor}")));
            }
            if let Some(bind) = &self.bind
                && !takes(self.arity, args, kwargs)
            {
                bind.bind(py).call(args, kwargs)?;
            }
            if let Some(limit) = self.max_pending {
                self.check_pending(py, limit)?;
            }
            session.make_room(py, &self.function)?;
            let mut arguments = Arguments::encode(py, session, &self.name, args, kwargs)?;
            let runtime = &session.runtime;
            let id = runtime.next_task_id(Some(*actor));
            // A call under way counts on the actor.
            runtime.lock().owner.add_ref(*key);
            let spec = TaskSpec {
                id,
                target: self.target.clone(),
                name: self.name.clone(),
                returns: self.returns,
                args: std::mem::take(&mut arguments.bytes),
                refs: std::mem::take(&mut arguments.refs),
                nested: std::mem::take(&mut arguments.nested),
                handle: Some(*key),
                retries: self.retries,
                attempt: 0,
                recorded: self.recorded,
                parent: TaskId::NIL,
            };
            let label = Label { name: &self.given, function: &self.function };
            let keys = runtime.submit(spec, label, running::one_of_several(py));
            call_site::note(py, session, &self.name, keys.iter().copied());
            returned(py, session, id, self.returns, keys)
        })
    }

    fn __repr__(&self) -> String {
        format!("<remote call of {} of actor {}>", self.name, self.handle.actor)
    }
}

impl ActorRef {
    /// The process of this actor, waited for if it is not there yet.
    pub(crate) fn process(&self, py: Python<'_>, session: &Arc<Session>) -> PyResult<ProcessId> {
        let Handle { session: own, actor, .. } = &*self.0;
        if !Arc::ptr_eq(own, session) {
            return Err(session::not_current(py, own, &format!("Actor {actor}")));
        }
        let mut found = None;
        access::wait_for(py, session, None, |state| {
            found = match state.owner.actor_peer(*actor) {
                Ok(None) => return false,
                Ok(Some(process)) => Some(Ok(process)),
                Err(end) => Some(Err(end.reason.clone())),
            };
            true
        })?;
        match found {
            Some(Ok(process)) => Ok(process),
            reason => {
                let reason = reason.and_then(Result::err).unwrap_or_default();
                Err(engine_error(py, FailureCode::ActorDied, &reason, &actor.0))
            }
        }
    }
}

/// Makes an actor of the class in `payload`. `named` is its name, its namespace
/// and what others need to know of it; `None` comes back if the name is taken.
#[pyfunction]
#[pyo3(signature = (payload, class_name, args, kwargs, placement, held, *, max_restarts, detached, named, strategy, captured, priority, environment, recorded))]
#[expect(clippy::too_many_arguments, reason = "arguments of one Python caller")]
pub(crate) fn create_actor(
    py: Python<'_>,
    payload: &[u8],
    class_name: &str,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
    placement: BTreeMap<String, f64>,
    held: BTreeMap<String, f64>,
    max_restarts: i32,
    detached: bool,
    named: Option<(String, String, Vec<u8>)>,
    strategy: Option<Bound<'_, PyDict>>,
    captured: bool,
    priority: i32,
    environment: Option<Py<PyAny>>,
    recorded: bool,
) -> PyResult<Option<ActorRef>> {
    guarded(py, || {
        let session = session::current(py)?;
        let runtime = &session.runtime;
        let class = FunctionId(xxh3_128(payload).to_le_bytes());
        runtime.ship_function(class, payload);
        let mut arguments = Arguments::encode(py, &session, class_name, args, Some(kwargs))?;
        let class_name: &str = &class_name.chars().take(200).collect::<String>();
        let placement = session::shape(placement, strategy.as_ref(), priority)?;
        let mut placement = groups::captured(py, placement, captured, class_name)?;
        placement.environment = session.environment_of(py, environment.as_ref())?;
        let held = session::shape(held, None, 0)?;
        let actor = runtime.next_actor_id();
        // Before it has its name: by that others find it, and their handles are counted here.
        let key = runtime.expect_actor(actor, detached, named.is_some());
        if let Some((name, namespace, about)) = named {
            let bytes = actor.0.to_vec();
            let wanted = NamedActor { name, namespace, about, ..NamedActor::default() };
            let wanted = NamedActor { actor: bytes.clone(), ..wanted };
            let bearer = asked(py, |interrupted| runtime.name_actor(wanted, interrupted));
            let bearer = bearer.inspect_err(|_| {
                // The answer may be on its way: an actor that will never be gives its name back.
                let unmade =
                    control::Actor { actor: bytes.clone(), no_restart: true, ..Default::default() };
                runtime.lock().io.tell_node(to_node::Body::KillActor(unmade));
                runtime.give_up_actor(actor, key);
            })?;
            if bearer.actor != bytes {
                runtime.give_up_actor(actor, key);
                return Ok(None);
            }
        }
        let spec = TaskSpec {
            id: runtime.next_task_id(Some(actor)),
            target: Target::Constructor { actor, class },
            name: "__init__".into(),
            returns: Returns::Fixed(0),
            args: std::mem::take(&mut arguments.bytes),
            refs: std::mem::take(&mut arguments.refs),
            nested: std::mem::take(&mut arguments.nested),
            handle: None,
            retries: max_restarts,
            attempt: 0,
            recorded,
            parent: TaskId::NIL,
        };
        let wanted = control::CreateActor {
            actor: actor.0.to_vec(),
            class_name: class_name.to_owned(),
            placement: Some(placement),
            held: Some(held),
            max_restarts: i64::from(max_restarts),
            detached,
            kept: false,
        };
        let by = running::one_of_several(py);
        // What is kept of one that is detached may have to be read first.
        py.detach(|| runtime.create_actor(actor, wanted, spec, by));
        Ok(Some(ActorRef(Arc::new(Handle { session, actor, key }))))
    })
}

/// What the node service answers to a question; signals are Python's to handle.
pub(crate) fn asked<T: Send>(
    py: Python<'_>,
    ask: impl FnOnce(&mut dyn FnMut() -> bool) -> Option<T> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let answer = py.detach(|| ask(&mut || raises_signal(&mut raised)));
    match (answer, raised) {
        (_, Some(error)) => Err(error),
        (Some(answer), None) => Ok(answer),
        (None, None) => Err(session_ended(py)),
    }
}

/// The actor of a name, and what is known of it; `None`: there is none.
#[pyfunction]
pub(crate) fn find_actor<'py>(
    py: Python<'py>,
    name: &str,
    namespace: &str,
) -> PyResult<Option<(ActorRef, Bound<'py, PyBytes>)>> {
    guarded(py, || {
        let session = session::current(py)?;
        let runtime = &session.runtime;
        let found = asked(py, |interrupted| runtime.find_actor(name, namespace, interrupted))?;
        let Some(actor) = ActorId::from_slice(&found.actor) else {
            return Ok(None);
        };
        let about = PyBytes::new(py, &found.about);
        Ok(Some((rebuild_actor(py, &actor.0, found.creator)?, about)))
    })
}

/// Namespace and name of each named actor, of one namespace or, if empty, of all.
#[pyfunction]
pub(crate) fn actor_names(py: Python<'_>, namespace: &str) -> PyResult<Vec<(String, String)>> {
    guarded(py, || {
        let session = session::current(py)?;
        let runtime = &session.runtime;
        let names = asked(py, |interrupted| runtime.actor_names(namespace, interrupted))?;
        let pairs = names.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        Ok(pairs.collect())
    })
}

/// Ends an actor at once.
#[pyfunction]
pub(crate) fn kill_actor(py: Python<'_>, actor: &ActorRef, no_restart: bool) -> PyResult<()> {
    guarded(py, || {
        let Handle { session, actor, .. } = &*actor.0;
        if !session.is_current() {
            return Err(session::not_current(py, session, &format!("Actor {actor}")));
        }
        let message = control::Actor { actor: actor.0.to_vec(), no_restart, ..Default::default() };
        session.runtime.lock().io.tell_node(to_node::Body::KillActor(message));
        Ok(())
    })
}
