//! The native module `oxiray._native`: Python's face of the engine.
//!
//! - [`session`]: the session of this process: start, stop, who am I
//! - [`folder`]: where sessions are on this machine
//! - [`refs`]: `ObjectRef`, and how references travel inside pickles
//! - [`values`]: Python values to bytes and back
//! - [`buffers`]: looking at shared memory from Python; all of this crate's unsafe
//! - [`submit`]: arguments of calls, and `RemoteCall`
//! - [`actors`]: `ActorRef`, `ActorCall`
//! - [`access`]: `get`, `wait`
//! - [`generator`]: `ObjectRefGenerator`: reading what a task yields
//! - [`yields`]: calls that yield: what a generator makes becomes items
//! - [`waiting`]: waiting for objects, and what a timeout says
//! - [`objects`]: `put`, `internal.free`, and where objects are
//! - [`call_site`]: where references were created
//! - [`errors`]: what went wrong, as exceptions
//! - [`execute`]: a worker: its main loop, and what its threads share
//! - [`language`]: Python, as the engine speaks it: loading, calling, answering
//! - [`loops`]: event loops: how asyncio begins calls, answers them, and hears of values
//! - [`arguments`]: the arguments of a call that came in
//! - [`cancel`]: cancelling, and stopping a task that runs here
//! - [`running`]: the call that the caller is in
//! - [`guard`]: a panic becomes an exception
//! - [`inspect`]: questions about the cluster and this process
//! - [`settings`]: environment variables, for what Python reads of them
//! - [`timeline`]: the timeline of the session
//! - [`state`]: the session as an observer sees it, for `oxiray.util.state`

use pyo3::prelude::*;

mod access;
mod actors;
mod arguments;
mod buffers;
mod call_site;
mod cancel;
mod errors;
mod execute;
mod folder;
mod generator;
mod groups;
mod guard;
mod inspect;
mod language;
mod loops;
mod objects;
mod pending;
mod printed;
mod refs;
mod returns;
mod running;
mod session;
mod settings;
mod state;
mod submit;
mod timeline;
mod values;
mod waiting;
mod yields;
mod zygote;

// What the calls share is guarded by the interpreter's lock: a free-threaded one keeps it on.
#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    // Else a panic ends the process: as in a module that was built in a hurry, as the programs are.
    module.add("unwinds", cfg!(panic = "unwind"))?;
    module.add_class::<refs::ObjectRef>()?;
    module.add_class::<generator::ObjectRefGenerator>()?;
    module.add_class::<submit::RemoteCall>()?;
    module.add_class::<actors::ActorRef>()?;
    module.add_class::<actors::ActorCall>()?;
    module.add_class::<buffers::StoreView>()?;
    module.add_class::<buffers::PrivateView>()?;
    module.add_class::<state::Observer>()?;
    module.add_class::<running::RunningCall>()?;
    module.add_class::<loops::LoopPort>()?;
    module.add_class::<loops::LaneOfCalls>()?;
    module.add_class::<loops::Reply>()?;
    let functions = [
        wrap_pyfunction!(zygote::adopt_orphans, module)?,
        wrap_pyfunction!(access::get, module)?,
        wrap_pyfunction!(objects::put, module)?,
        wrap_pyfunction!(objects::free, module)?,
        wrap_pyfunction!(cancel::cancel, module)?,
        wrap_pyfunction!(cancel::is_cancelled, module)?,
        wrap_pyfunction!(cancel::is_to_stop, module)?,
        wrap_pyfunction!(execute::exit_actor, module)?,
        wrap_pyfunction!(objects::locations, module)?,
        wrap_pyfunction!(access::wait, module)?,
        wrap_pyfunction!(access::is_complete, module)?,
        wrap_pyfunction!(access::is_near, module)?,
        wrap_pyfunction!(access::watch, module)?,
        wrap_pyfunction!(access::next_watched, module)?,
        wrap_pyfunction!(actors::create_actor, module)?,
        wrap_pyfunction!(actors::kill_actor, module)?,
        wrap_pyfunction!(actors::find_actor, module)?,
        wrap_pyfunction!(actors::actor_names, module)?,
        wrap_pyfunction!(actors::rebuild_actor, module)?,
        wrap_pyfunction!(groups::create_group, module)?,
        wrap_pyfunction!(groups::remove_group, module)?,
        wrap_pyfunction!(groups::wait_for_group, module)?,
        wrap_pyfunction!(groups::group_ready, module)?,
        wrap_pyfunction!(groups::find_groups, module)?,
        wrap_pyfunction!(refs::rebuild_ref, module)?,
        wrap_pyfunction!(folder::sessions_folder, module)?,
        wrap_pyfunction!(folder::new_session, module)?,
        wrap_pyfunction!(folder::make_session, module)?,
        wrap_pyfunction!(folder::hand_over_session, module)?,
        wrap_pyfunction!(folder::end_session, module)?,
        wrap_pyfunction!(folder::dashboard_url, module)?,
        wrap_pyfunction!(folder::started_nodes, module)?,
        wrap_pyfunction!(folder::forget_node, module)?,
        wrap_pyfunction!(folder::forget_cluster, module)?,
        wrap_pyfunction!(session::start, module)?,
        wrap_pyfunction!(session::connect, module)?,
        wrap_pyfunction!(pending::limit_pending, module)?,
        wrap_pyfunction!(session::stop, module)?,
        wrap_pyfunction!(session::is_running, module)?,
        wrap_pyfunction!(session::set_environment, module)?,
        wrap_pyfunction!(session::environment, module)?,
        wrap_pyfunction!(session::after_fork_in_child, module)?,
        wrap_pyfunction!(session::connect_worker, module)?,
        wrap_pyfunction!(errors::failures, module)?,
        wrap_pyfunction!(execute::run_worker, module)?,
        wrap_pyfunction!(settings::settings, module)?,
        wrap_pyfunction!(inspect::next_log, module)?,
        wrap_pyfunction!(inspect::cluster_view, module)?,
        wrap_pyfunction!(inspect::key_value, module)?,
        wrap_pyfunction!(inspect::context, module)?,
        wrap_pyfunction!(inspect::show_bytes, module)?,
        wrap_pyfunction!(running::current_printer, module)?,
        wrap_pyfunction!(timeline::timeline, module)?,
        wrap_pyfunction!(timeline::timeline_view, module)?,
        wrap_pyfunction!(timeline::write_timeline, module)?,
        wrap_pyfunction!(timeline::record_span, module)?,
        wrap_pyfunction!(printed::note_printed, module)?,
        wrap_pyfunction!(inspect::counts, module)?,
        wrap_pyfunction!(inspect::tasks_under_way, module)?,
        wrap_pyfunction!(guard::fail_for_test, module)?,
    ];
    functions.into_iter().try_for_each(|function| module.add_function(function))
}
