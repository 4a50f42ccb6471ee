//! What is known of tasks whose records are lost: with a node, or for want of room (E-2).

use oxiray_ids::ProcessId;
use oxiray_wire::frame::FailureCode;

use super::*;
use crate::{Label, State, TaskKind};

/// A driver here, and a worker of a node whose files nobody reads any more.
const ELSEWHERE: ProcessId = ProcessId::new(2, 5);
const LEFT_NS: u64 = 1 << 62;

fn history_after_loss(session: &Session) -> History {
    let mut history = session.history();
    history.node_left(ELSEWHERE.node(), LEFT_NS);
    history
}

#[test]
fn what_was_sent_to_a_node_that_left_ended_as_its_owner_says() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    for counter in 1..=4 {
        driver.submitted(task(counter), TaskKind::Function, &name("f"), false, [].into_iter());
    }
    for counter in 1..=3 {
        driver.sent(task(counter), 0, ELSEWHERE);
    }
    driver.failed(task(2), 0, FailureCode::TaskError, "");
    driver.ready(task(3), 0);
    let history = history_after_loss(&session);
    let state = |counter| history.get(task(counter)).unwrap().state();
    assert_eq!(state(1), State::Finished, "its owner has its answer");
    assert_eq!(state(2), State::Failed, "its owner was told");
    assert_eq!(state(3), State::PendingNode, "it came back");
    assert_eq!(state(4), State::PendingNode, "it was never there");
    assert_eq!(history.get(task(1)).unwrap().newest().end_ns(), None);
}

#[test]
fn of_what_its_owner_did_not_live_to_see_nobody_knows_the_end() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut node = session.log(0, Role::Node);
    driver.submitted(task(1), TaskKind::Function, &name("f"), false, [].into_iter());
    driver.sent(task(1), 0, ELSEWHERE);
    node.ended(ProcessId::new(0, DRIVER));
    let history = history_after_loss(&session);
    let found = history.get(task(1)).unwrap();
    assert_eq!(found.state(), State::Unknown);
    assert!(found.state().is_end() && found.newest().failure().is_none());
    assert_eq!(found.newest().end_ns(), None);
    assert_eq!(history.summary()[0].states[State::Unknown as usize], 1);
}

#[test]
fn what_an_owner_that_ended_here_never_sent_has_failed() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut node = session.log(0, Role::Node);
    driver.submitted(task(1), TaskKind::Function, &name("f"), false, [].into_iter());
    node.ended(ProcessId::new(0, DRIVER));
    let history = history_after_loss(&session);
    let failure = history.get(task(1)).unwrap().newest().failure().unwrap();
    assert_eq!((failure.code, failure.error_type()), (FailureCode::OwnerDied, "OWNER_DIED"));
    assert!(failure.time_ns > 0);
}

#[test]
fn what_an_owner_that_was_lost_with_its_node_left_open_is_unknown_unless_it_was_begun_here() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut worker = session.log(2, Role::Worker);
    for counter in 1..=3 {
        driver.submitted(task(counter), TaskKind::Function, &name("f"), false, [].into_iter());
    }
    driver.sent(task(2), 0, ProcessId::new(0, 2));
    driver.sent(task(3), 0, ProcessId::new(0, 2));
    worker.begin(task(3), 0, 1000);
    let mut lost = session.history();
    lost.node_left(0, LEFT_NS);
    // Both are of one node here: the worker alone is known to the end.
    let worker = lost.process_index[&ProcessId::new(0, 2)] as usize;
    lost.processes[worker].is_unread = false;
    let state = |counter| lost.get(task(counter)).unwrap().state();
    assert_eq!([1, 2].map(state), [State::Unknown; 2]);
    assert_eq!(state(3), State::Failed, "its worker would have said that it ended");
}

#[test]
fn a_constructor_that_returned_stays_so_when_its_node_is_gone() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    driver.submitted(task(1), TaskKind::Constructor, &name("A.__init__"), false, [].into_iter());
    driver.answered(task(1), 0, ELSEWHERE);
    assert_eq!(session.history().get(task(1)).unwrap().state(), State::Finished);
    let history = history_after_loss(&session);
    let found = history.get(task(1)).unwrap();
    assert_eq!(found.state(), State::Finished);
    assert_eq!(found.newest().worker().unwrap().id, ELSEWHERE);
}

#[test]
fn a_process_without_room_for_anything_says_how_much_it_lost() {
    let session = Session::new();
    std::fs::create_dir(session.path("")).unwrap();
    // No file of these names can be made: as where there is no room.
    std::fs::create_dir(session.path("2.0")).unwrap();
    let mut worker = session.log(2, Role::Worker);
    let plain = name("f");
    for counter in 0..100 {
        worker.begin(task(counter), 0, 1000);
        worker.ran(&ran(task(counter), &plain, 1000, 5));
    }
    let mut history = session.history();
    assert_eq!((history.len(), history.lost()), (0, 100));
    std::fs::remove_dir(session.path("2.0")).unwrap();
    worker.ran(&ran(task(200), &plain, 5_000_000_000, 5));
    history.update(0, &mut session.files()).unwrap();
    assert_eq!((history.len(), history.lost()), (1, 100), "and goes on saying so");
    assert!(!session.path("2.lost").exists());
}

#[test]
fn a_text_that_is_lost_counts_too() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    let plain = name("f");
    worker.ran(&ran(task(1), &plain, 1, 5));
    // Beyond the length that texts may have: as where there is no room.
    worker.fill_texts();
    let error = Some(("ValueError", "Traceback"));
    worker.ran(&Ran { error, ..ran(task(2), &plain, 2, 5) });
    let history = session.history();
    assert_eq!(history.get(task(2)).unwrap().state(), State::Failed);
    assert_eq!(history.lost(), 1);
}

#[test]
fn a_name_that_was_given_does_not_hide_the_function() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let function = name("work");
    for counter in 0..3 {
        let given = name(&format!("job-{counter}"));
        let label = Label { name: &given, function: &function };
        driver.submitted(task(counter), TaskKind::Function, label, false, [].into_iter());
    }
    driver.submitted(task(9), TaskKind::Function, &function, false, [].into_iter());
    let history = session.history();
    let called = |counter| {
        let task = history.get(task(counter)).unwrap();
        (task.name(), task.function())
    };
    assert_eq!([called(2), called(9)], [("job-2", "work"), ("work", "work")]);
    let rows = history.summary();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((rows[0].name, rows[0].states[State::PendingNode as usize]), ("work", 4));
}
