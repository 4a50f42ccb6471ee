//! Placement groups: made, waited for, found and removed; `oxiray._groups` is their Python side.

use std::collections::BTreeMap;

use oxiray_ids::GroupId;
use oxiray_wire::cluster::GroupInfo;
use oxiray_wire::control::{
    Amount, Bundle, CreateGroup, FindGroups, GroupStrategy, Shape, Strategy, UNIT,
};
use oxiray_worker::Fare;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::access::{deadline, sleep_for};
use crate::actors::asked;
use crate::guard::guarded;
use crate::refs::ObjectRef;
use crate::running::{self, HERE};
use crate::session::{self, Selector};
use crate::values;

/// Bytes that the bundles of a group may have in a message, which has other parts as well.
const MOST_BYTES: usize = 48 << 10;

fn id_of(bytes: &[u8]) -> PyResult<GroupId> {
    GroupId::from_slice(bytes)
        .ok_or_else(|| PyValueError::new_err("not the bytes of a placement group's id"))
}

/// The shape of a task or actor that goes into the group of whoever submits it, if it may be
/// `captured` and that captures.
pub(crate) fn captured(
    py: Python<'_>,
    shape: Shape,
    captured: bool,
    name: &str,
) -> PyResult<Shape> {
    let Some(group) = running::capturing().filter(|_| captured) else {
        return Ok(shape);
    };
    let needs = PyDict::new(py);
    for Amount { name, amount } in &shape.resources {
        needs.set_item(name, *amount as f64 / UNIT as f64)?;
    }
    let id = PyBytes::new(py, &group.0);
    py.import("oxiray._groups")?.call_method1("check_captured", (id, needs, name))?;
    let strategy = Strategy { group: group.0.to_vec(), capture: true, ..Strategy::default() };
    Ok(Shape { strategy: Some(strategy), ..shape })
}

/// Makes a group of bundles, each with its resources and the labels that its node must have.
/// `None` comes back if the name is taken.
#[pyfunction]
#[pyo3(signature = (bundles, strategy, *, name, namespace, detached, prefer))]
pub(crate) fn create_group<'py>(
    py: Python<'py>,
    bundles: Vec<(BTreeMap<String, f64>, Vec<Selector>)>,
    strategy: &str,
    name: String,
    namespace: String,
    detached: bool,
    prefer: Vec<u8>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    guarded(py, || {
        let session = session::current(py)?;
        let bundle = |(resources, labels)| {
            let resources = session::amounts(resources)?;
            Ok(Bundle { resources, labels: session::label_selectors(labels)? })
        };
        let bundles: Vec<Bundle> = bundles.into_iter().map(bundle).collect::<PyResult<_>>()?;
        let is_meant = |known: &GroupStrategy| known.name() == strategy;
        let strategy = GroupStrategy::ALL
            .into_iter()
            .find(is_meant)
            .ok_or_else(|| PyValueError::new_err(format!("no strategy of groups: {strategy}")))?;
        let actor = HERE.read().actor.map(|actor| actor.0.to_vec()).unwrap_or_default();
        let create = CreateGroup {
            name,
            namespace,
            strategy: strategy as i32,
            bundles,
            detached,
            actor,
            prefer,
            ..CreateGroup::default()
        };
        let bytes = create.bytes();
        if bytes > MOST_BYTES {
            return Err(PyValueError::new_err(format!(
                "the bundles of a placement group can have {MOST_BYTES} bytes together, not \
                 {bytes}: make several groups of fewer bundles"
            )));
        }
        let runtime = &session.runtime;
        let made = asked(py, |interrupted| runtime.create_group(create, interrupted))?;
        Ok(made.map(|id| PyBytes::new(py, &id.0)))
    })
}

/// Ends a group, with what is in it.
#[pyfunction]
pub(crate) fn remove_group(py: Python<'_>, group: &[u8]) -> PyResult<()> {
    guarded(py, || {
        session::current(py)?.runtime.remove_group(id_of(group)?);
        Ok(())
    })
}

/// Waits until a group is created, at most so many seconds; whether it is.
#[pyfunction]
pub(crate) fn wait_for_group(py: Python<'_>, group: &[u8], timeout: Option<f64>) -> PyResult<bool> {
    guarded(py, || {
        let session = session::current(py)?;
        let id = id_of(group)?;
        let until = deadline(timeout)?;
        session.runtime.watch_group(id);
        let mut fare = Fare::Waits;
        sleep_for(py, &session, until, "PlacementGroup.wait()", |state| {
            fare = state.fare_of(&id);
            fare != Fare::Waits
        })?;
        Ok(fare == Fare::Created)
    })
}

/// A reference that has this value once a group is created.
#[pyfunction]
pub(crate) fn group_ready(
    py: Python<'_>,
    group: &[u8],
    value: &Bound<'_, PyAny>,
) -> PyResult<ObjectRef> {
    guarded(py, || {
        let session = session::current(py)?;
        let id = id_of(group)?;
        let (content, contained) =
            values::encode(&session, value, session.runtime.identity.process)?;
        session.release(contained);
        let (id, key) = session.runtime.group_ready(id, content);
        Ok(ObjectRef::of(session, key, id))
    })
}

/// Groups: of an id, of a name in a namespace, or all that there are.
#[pyfunction]
#[pyo3(signature = (*, group, name, namespace))]
pub(crate) fn find_groups<'py>(
    py: Python<'py>,
    group: Vec<u8>,
    name: String,
    namespace: String,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    guarded(py, || {
        let session = session::current(py)?;
        let runtime = &session.runtime;
        let wanted = FindGroups { group, name, namespace, ..FindGroups::default() };
        let found = asked(py, |interrupted| runtime.find_groups(&wanted, interrupted))?;
        found.iter().map(|info| show(py, info)).collect()
    })
}

fn show<'py>(py: Python<'py>, info: &GroupInfo) -> PyResult<Bound<'py, PyDict>> {
    let amounts = |bundle: &Bundle| -> BTreeMap<String, f64> {
        let amount = |amount: &Amount| (amount.name.clone(), amount.amount as f64 / UNIT as f64);
        bundle.resources.iter().map(amount).collect()
    };
    let node = |node: &u32| {
        let place = info.places.iter().find(|place| place.node == *node);
        place.map(|place| PyBytes::new(py, &place.id))
    };
    let dict = PyDict::new(py);
    dict.set_item("group", PyBytes::new(py, &info.group))?;
    dict.set_item("name", &info.name)?;
    dict.set_item("namespace", &info.namespace)?;
    dict.set_item("strategy", info.strategy().name())?;
    dict.set_item("state", info.phase().name())?;
    dict.set_item("bundles", info.bundles.iter().map(amounts).collect::<Vec<_>>())?;
    dict.set_item("nodes", info.nodes.iter().map(node).collect::<Vec<_>>())?;
    dict.set_item("detached", info.detached)?;
    dict.set_item("reason", &info.reason)?;
    dict.set_item("waited_us", info.waited_us)?;
    dict.set_item("attempts", info.attempts)?;
    dict.set_item("scheduling_state", info.scheduling().name(info.phase()))?;
    Ok(dict)
}
