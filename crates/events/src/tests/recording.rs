//! What is recorded is read: E-1, E-2, E-3.

use oxiray_ids::ProcessId;
use oxiray_wire::frame::FailureCode;

use super::*;
use crate::{State, TaskKind, texts};

#[test]
fn a_task_is_followed_from_its_submission_to_its_end() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut worker = session.log(2, Role::Worker);
    let mut history = History::new();
    let state = |history: &mut History| {
        history.update(0, &mut session.files()).unwrap();
        history.get(task(2)).map(|task| task.state())
    };
    driver.set_now(100);
    driver.submitted(task(1), TaskKind::Function, &name("make"), false, [].into_iter());
    let needs = [task(1).object(1)];
    driver.submitted(task(2), TaskKind::Function, &name("use"), true, needs.into_iter());
    assert_eq!(state(&mut history), Some(State::PendingArguments));
    driver.ready(task(2), 0);
    assert_eq!(state(&mut history), Some(State::PendingNode));
    driver.sent(task(2), 0, ProcessId::new(0, 2));
    assert_eq!(state(&mut history), Some(State::Submitted));
    worker.begin(task(2), 0, 300);
    assert_eq!(state(&mut history), Some(State::Running));
    worker.ran(&ran(task(2), &name("use"), 300, 50));
    assert_eq!(state(&mut history), Some(State::Finished));

    let found = history.get(task(2)).unwrap();
    assert_eq!((found.name(), found.kind()), ("use", TaskKind::Function));
    assert_eq!(found.needs(), [task(1)]);
    assert_eq!(history.get(task(1)).unwrap().feeds(), [task(2)]);
    assert_eq!(found.newest().parts_ns(), Some([10, 50, 20]));
    let attempt = found.newest();
    assert_eq!(attempt.start_ns().unwrap() - attempt.sent_ns().unwrap(), 200);
    assert_eq!(attempt.worker().unwrap().id, ProcessId::new(0, 2));
    assert_eq!(found.owner().unwrap().role, Role::Driver);
    assert_eq!(history.len(), 2);
}

#[test]
fn what_a_task_submits_has_it_as_parent() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    let (inner, plain) = (name("inner"), name("outer"));
    for (outer, counter) in [(task(1), 10), (task(2), 20)] {
        worker.begin(outer, 0, 1);
        worker.submitted(task(counter), TaskKind::Function, &inner, false, [].into_iter());
        worker.submitted(task(counter + 1), TaskKind::Function, &inner, false, [].into_iter());
        worker.ran(&ran(outer, &plain, 1, 1));
    }
    worker.submitted(task(30), TaskKind::Function, &inner, false, [].into_iter());
    let history = session.history();
    let parent = |counter| history.get(task(counter)).unwrap().parent();
    assert_eq!([parent(10), parent(11)], [Some(task(1)); 2]);
    assert_eq!([parent(20), parent(21)], [Some(task(2)); 2]);
    assert_eq!(parent(30), None);
}

#[test]
fn failures_have_their_words() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    let plain = name("f");
    let error = Some(("ValueError", "Traceback: é"));
    worker.ran(&Ran { error, ..ran(task(1), &plain, 5, 5) });
    let mut driver = session.log(DRIVER, Role::Driver);
    driver.submitted(task(2), TaskKind::Function, &plain, false, [].into_iter());
    driver.failed(task(2), 0, FailureCode::WorkerCrashed, &"x".repeat(1 << 20));
    let history = session.history();
    let failure = |counter| {
        let task = history.get(task(counter)).unwrap();
        assert_eq!(task.state(), State::Failed);
        task.newest().failure().unwrap()
    };
    let text = |counter| {
        let place = failure(counter).text.unwrap();
        texts::read(&mut session.files(), place).unwrap().unwrap()
    };
    assert_eq!(failure(1).exception, Some("ValueError"));
    assert_eq!(failure(1).error_type(), "TASK_EXECUTION_EXCEPTION");
    assert_eq!(text(1), "Traceback: é");
    assert_eq!(failure(2).error_type(), "WORKER_DIED");
    assert_eq!(text(2).len(), texts::LONGEST);
}

#[test]
fn many_records_go_over_several_chunks() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    let names: Vec<_> = (0..40).map(|number| name(&format!("f{number}"))).collect();
    for counter in 0..20_000 {
        worker.ran(&ran(task(counter), &names[counter as usize % 40], counter * 100 + 1, 50));
    }
    let history = session.history();
    assert_eq!((history.len(), history.lost()), (20_000, 0));
    for counter in [0, 1, 1023, 19_999] {
        let found = history.get(task(counter)).unwrap();
        assert_eq!(found.name(), format!("f{}", counter % 40));
        assert_eq!(found.state(), State::Finished);
    }
    assert!(session.path("2.3").exists());
}

#[test]
fn a_killed_process_leaves_what_it_had_recorded() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    worker.ran(&ran(task(1), &name("f"), 5, 5));
    worker.begin(task(2), 0, 30);
    // E-3: nothing is written at the end.
    std::mem::forget(worker);
    let history = session.history();
    assert_eq!(history.get(task(1)).unwrap().state(), State::Finished);
    assert_eq!(history.get(task(2)).unwrap().state(), State::Running);
}

#[test]
fn the_running_task_goes_along_to_the_next_chunk() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    worker.begin(task(1), 0, 30);
    let inner = name("inner");
    for counter in 2..5000 {
        worker.submitted(task(counter), TaskKind::Function, &inner, false, [].into_iter());
    }
    assert_eq!(session.history().get(task(1)).unwrap().state(), State::Running);
}

#[test]
fn a_directory_that_cannot_be_written_costs_records_and_nothing_else() {
    let session = Session::new();
    std::fs::write(session.0.join("events"), "in the way").unwrap();
    let mut worker = session.log(2, Role::Worker);
    let plain = name("f");
    for counter in 0..100 {
        worker.begin(task(counter), 0, 1000);
        worker.ran(&ran(task(counter), &plain, 1000, 5));
    }
    std::fs::remove_file(session.0.join("events")).unwrap();
    // Nothing is tried again for a second.
    worker.ran(&ran(task(200), &plain, 2000, 5));
    worker.ran(&ran(task(201), &plain, 3_000_000_000, 5));
    let history = session.history();
    assert!(history.get(task(200)).is_none());
    assert_eq!(history.get(task(201)).unwrap().name(), "f");
    assert_eq!(history.lost(), 101);
}

#[test]
fn spans_of_users_are_read() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    worker.begin(task(1), 0, 30);
    worker.span("inner", 35, 5, "{\"step\": 1}");
    worker.span("outer", 31, 50, "");
    worker.ran(&ran(task(1), &name("f"), 30, 90));
    worker.begin_unrecorded(task(2));
    worker.span("unseen", 200, 5, "");
    worker.end();
    let history = session.history();
    let spans = &history.processes()[0].spans;
    let found: Vec<_> = spans.iter().map(|span| (history.name(span.name), span.duration)).collect();
    assert_eq!(found, [("outer", 50), ("inner", 5)]);
}

#[test]
fn what_an_owner_leaves_behind_has_failed() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut worker = session.log(2, Role::Worker);
    let mut node = session.log(0, Role::Node);
    let plain = name("f");
    for counter in 1..4 {
        driver.submitted(task(counter), TaskKind::Function, &plain, false, [].into_iter());
    }
    worker.ran(&ran(task(1), &plain, 5, 5));
    worker.begin(task(2), 0, 50);
    let state = |counter| session.history().get(task(counter)).unwrap().state();
    assert_eq!([1, 2, 3].map(state), [State::Finished, State::Running, State::PendingNode]);
    node.set_now(100);
    node.ended(ProcessId::new(0, DRIVER));
    assert_eq!([1, 2, 3].map(state), [State::Finished, State::Failed, State::Failed]);
    let history = session.history();
    let failure = history.get(task(2)).unwrap().newest().failure().unwrap();
    assert_eq!(failure.error_type(), "OWNER_DIED");
    assert!(history.get(task(1)).unwrap().newest().failure().is_none());
}

#[test]
fn what_a_worker_leaves_behind_does_not_run() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut worker = session.log(2, Role::Worker);
    let mut node = session.log(0, Role::Node);
    let plain = name("f");
    for counter in 1..3 {
        driver.submitted(task(counter), TaskKind::Function, &plain, false, [].into_iter());
        driver.sent(task(counter), 0, ProcessId::new(0, 2));
    }
    worker.begin(task(1), 0, 50);
    assert!(session.history().is_running());
    node.ended(ProcessId::new(0, 2));
    let history = session.history();
    assert!(!history.is_running());
    let found = history.get(task(1)).unwrap();
    assert_eq!(found.state(), State::Failed);
    assert_eq!(found.newest().failure().unwrap().error_type(), "WORKER_DIED");
    // Its owner sends what had not begun to another.
    assert_eq!(history.get(task(2)).unwrap().state(), State::Submitted);
    driver.retried(task(1), 1, false);
    assert_eq!(session.history().get(task(1)).unwrap().state(), State::PendingNode);
    driver.retried(task(1), 2, true);
    assert_eq!(session.history().get(task(1)).unwrap().state(), State::PendingArguments);
    driver.ready(task(1), 2);
    assert_eq!(session.history().get(task(1)).unwrap().state(), State::PendingNode);
}

#[test]
fn of_what_a_node_leaves_behind_nobody_knows_the_end() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    worker.ran(&ran(task(1), &name("f"), 5, 5));
    worker.begin(task(2), 0, 50);
    let mut history = session.history();
    history.node_left(7, 1);
    assert_eq!(history.get(task(2)).unwrap().state(), State::Running);
    history.node_left(0, 1);
    assert_eq!(history.get(task(2)).unwrap().state(), State::Unknown);
    assert_eq!(history.get(task(1)).unwrap().state(), State::Finished);
}

#[test]
fn a_task_whose_answer_was_lost_has_failed() {
    // The driver's number decides which of the files is read first.
    for driver in [1, 9] {
        let session = Session::new();
        let mut owner = session.log(driver, Role::Driver);
        let mut worker = session.log(2, Role::Worker);
        let plain = name("f");
        owner.submitted(task(1), TaskKind::Function, &plain, false, [].into_iter());
        worker.ran(&ran(task(1), &plain, 5, 5));
        owner.failed(task(1), 0, FailureCode::WorkerCrashed, "the worker died");
        let history = session.history();
        let found = history.get(task(1)).unwrap();
        assert_eq!(found.state(), State::Failed);
        assert_eq!(found.newest().failure().unwrap().error_type(), "WORKER_DIED");
    }
}

#[test]
fn long_texts_are_not_remembered_without_bound() {
    let session = Session::new();
    let mut texts = texts::TextFile::new(session.0.join("2.text"));
    for number in 0..1000 {
        let text = format!("{number} {}", "x".repeat(texts::LONGEST));
        texts.add(text.as_bytes()).unwrap();
        assert!(texts.find(text.as_bytes()).is_some());
        assert!(texts.remembered() <= texts::MOST_KNOWN);
    }
}

#[test]
fn names_that_were_written_are_known_while_nothing_can_be() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    let plain = name("f");
    worker.ran(&ran(task(1), &plain, 1, 5));
    // No chunk can follow the first, so that nothing is tried for a second.
    std::fs::write(session.path("2.1"), "in the way").unwrap();
    for counter in 2..500 {
        worker.ran(&ran(task(counter), &name("f"), 100, 5));
    }
    let foreign = std::fs::read(session.path("2.1")).unwrap();
    assert_eq!(foreign, b"in the way", "it is not ours to remove");
    let history = session.history();
    assert!(history.lost() > 0);
    assert!(history.tasks().all(|task| task.name() == "f"));
}

#[test]
fn a_task_that_came_back_waits_for_another_worker() {
    // The driver's number decides which of the files is read first.
    for driver in [1, 9] {
        let session = Session::new();
        let mut owner = session.log(driver, Role::Driver);
        let mut worker = session.log(3, Role::Worker);
        let plain = name("f");
        owner.submitted(task(1), TaskKind::Function, &plain, false, [].into_iter());
        owner.sent(task(1), 0, ProcessId::new(0, 2));
        owner.ready(task(1), 0);
        let history = session.history();
        let found = history.get(task(1)).unwrap().newest();
        assert_eq!(found.state(), State::PendingNode);
        assert!(found.worker().is_none() && found.sent_ns().is_none());
        owner.set_now(50);
        owner.sent(task(1), 0, ProcessId::new(0, 3));
        worker.ran(&ran(task(1), &plain, 60, 5));
        let history = session.history();
        let found = history.get(task(1)).unwrap().newest();
        assert_eq!(found.state(), State::Finished);
        assert_eq!(found.worker().unwrap().id.number(), 3);
        assert!(found.sent_ns() < found.start_ns());
    }
}

#[test]
fn a_process_that_runs_several_shows_each_until_it_ends() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    let f = name("A.f");
    for counter in 1..=3 {
        worker.began(task(counter), 0, 100 + counter);
    }
    let state = |counter| session.history().get(task(counter)).map(|task| task.state());
    assert_eq!([1, 2, 3].map(state), [Some(State::Running); 3]);
    worker.ran(&ran(task(2), &f, 102, 50));
    assert_eq!(
        [1, 2, 3].map(state),
        [Some(State::Running), Some(State::Finished), Some(State::Running)]
    );
    // What they submit is of the one that does, whatever else runs.
    worker.act_for(Some(task(1)), true);
    worker.submitted(task(9), TaskKind::Function, &f, false, [].into_iter());
    worker.act_for(Some(task(3)), true);
    worker.submitted(task(10), TaskKind::Function, &f, false, [].into_iter());
    let history = session.history();
    let parent = |counter| history.get(task(counter)).and_then(|task| task.parent());
    assert_eq!((parent(9), parent(10)), (Some(task(1)), Some(task(3))));
}
