//! Logs that pass from process to process (E-7), and chunks that go (E-8).

use std::path::Path;
use std::{fs, io};

use oxiray_ids::ProcessId;
use oxiray_wire::frame::FailureCode;

use super::*;
use crate::{FileInfo, Files, State, TaskKind, newest_record, texts};

const NODE: u32 = 0;

fn process(number: u32) -> ProcessId {
    ProcessId::new(0, number)
}

fn next(session: &Session, number: u32, log: u32, chunk: u32) -> EventLog {
    session.log(number, Role::Worker).continuing(log, chunk)
}

fn files(session: &Session) -> usize {
    fs::read_dir(session.path("")).unwrap().count()
}

#[test]
fn processes_that_follow_each_other_share_files() {
    let session = Session::new();
    let mut node = session.log(NODE, Role::Node);
    for number in 2..300 {
        let mut worker = match number {
            2 => session.log(2, Role::Worker),
            _ => next(&session, number, 2, 0),
        };
        let error = Some(("ValueError", "Traceback"));
        let plain = name("f");
        worker.ran(&Ran { error, ..ran(task(u64::from(number)), &plain, 10, 5) });
        drop(worker);
        node.ended(process(number));
        if session.path("2.1").exists() {
            break;
        }
    }
    assert!(files(&session) <= 6, "two chunks of one log and one of the node's, with their texts");
    let history = session.history();
    let last = history.len() as u64 + 2;
    assert!(last > 50, "{last}");
    for number in 2..last {
        let found = history.get(task(number)).unwrap().newest();
        assert_eq!(found.worker().unwrap().id, process(number as u32), "E-7");
        let place = found.failure().unwrap().text.unwrap();
        assert_eq!(texts::read(&mut session.files(), place).unwrap().unwrap(), "Traceback");
    }
}

#[test]
fn what_a_killed_process_ran_is_known_after_its_log_was_handed_on() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut node = session.log(NODE, Role::Node);
    let mut killed = session.log(2, Role::Worker);
    for counter in 1..=2 {
        driver.submitted(task(counter), TaskKind::Function, &name("f"), false, [].into_iter());
        driver.sent(task(counter), 0, process(1 + counter as u32));
    }
    killed.begin(task(1), 3, 1000);
    let mut before = session.history();
    drop(killed);
    node.ended(process(2));
    node.given(2, process(3));
    let mut worker = next(&session, 3, 2, 0);
    worker.begin(task(2), 0, 2000);
    before.update(0, &mut session.files()).unwrap();
    for history in [&before, &session.history()] {
        let found = history.get(task(1)).unwrap();
        assert_eq!(found.newest().worker().unwrap().id, process(2));
        assert!(found.newest().start_ns().is_some());
        assert_eq!(found.state(), State::Failed);
        let found = history.get(task(2)).unwrap();
        assert_eq!(found.newest().worker().unwrap().id, process(3));
        assert_eq!(found.state(), State::Running);
    }
}

#[test]
fn a_log_that_was_at_rest_is_read_again_once_it_is_given() {
    let session = Session::new();
    let mut node = session.log(NODE, Role::Node);
    let mut worker = session.log(2, Role::Worker);
    let plain = name("f");
    worker.ran(&ran(task(1), &plain, 10, 5));
    node.ended(process(2));
    let mut history = session.history();
    history.update(0, &mut session.files()).unwrap();
    let mut worker = next(&session, 3, 2, 0);
    node.given(2, process(3));
    for counter in 2..5 {
        worker.ran(&ran(task(counter), &plain, 10, 5));
        history.update(0, &mut session.files()).unwrap();
        assert_eq!(history.len() as u64, counter);
    }
}

#[test]
fn a_log_of_which_nothing_is_left_begins_where_it_ended() {
    let session = Session::new();
    let mut worker = next(&session, 3, 2, 4);
    let plain = name("f");
    worker.ran(&ran(task(1), &plain, 10, 5));
    assert!(session.path("2.4").exists());
    fs::write(session.path("5.7"), "not a chunk").unwrap();
    let mut other = next(&session, 4, 5, 7);
    other.ran(&ran(task(2), &plain, 10, 5));
    assert!(session.path("5.8").exists());
    assert_eq!(session.history().len(), 2);
}

#[test]
fn records_lost_by_all_who_wrote_a_log_are_counted() {
    let session = Session::new();
    fs::create_dir(session.path("")).unwrap();
    fs::create_dir(session.path("2.0")).unwrap();
    let plain = name("f");
    session.log(2, Role::Worker).ran(&ran(task(1), &plain, 10, 5));
    next(&session, 3, 2, 0).ran(&ran(task(2), &plain, 10, 5));
    assert_eq!(session.history().lost(), 2);
}

#[test]
fn a_chunk_is_read_without_those_before_it() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut counter = 0;
    while !session.path("1.2").exists() {
        counter += 1;
        driver.begin(task(9_000_000), 0, 1);
        driver.submitted(task(counter), TaskKind::Function, &name("f"), false, [].into_iter());
        driver.failed(task(counter), 0, FailureCode::WorkerCrashed, "it was lost");
    }
    let mut all = session.history();
    for gone in ["1.0", "1.0.text", "1.1", "1.1.text"] {
        fs::remove_file(session.path(gone)).unwrap();
    }
    let rest = session.history();
    let (first, last) = (rest.get(task(1)), rest.get(task(counter)).unwrap());
    assert!(first.is_none() && rest.len() < all.len());
    assert_eq!((last.name(), last.parent()), ("f", Some(task(9_000_000))), "E-8");
    let place = last.newest().failure().unwrap().text.unwrap();
    assert_eq!(texts::read(&mut session.files(), place).unwrap().unwrap(), "it was lost");
    // Who has read what is gone goes on.
    driver.submitted(task(counter + 1), TaskKind::Function, &name("f"), false, [].into_iter());
    all.update(0, &mut session.files()).unwrap();
    assert!(all.get(task(1)).is_some() && all.get(task(counter + 1)).is_some());
}

#[test]
fn a_task_whose_end_may_have_been_dropped_is_unknown() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut node = session.log(NODE, Role::Node);
    let mut worker = session.log(2, Role::Worker);
    for counter in 1..=3 {
        driver.set_now(100);
        driver.submitted(task(counter), TaskKind::Function, &name("f"), false, [].into_iter());
        driver.sent(task(counter), 0, process(2));
    }
    worker.begin(task(2), 0, 200);
    let state = |history: &History, counter| history.get(task(counter)).unwrap().state();
    assert_eq!(state(&session.history(), 1), State::Submitted);
    node.dropped(5 << 20, 100);
    let history = session.history();
    assert_eq!(history.dropped_by(0).unwrap().bytes, 5 << 20);
    assert_eq!(
        [1, 2, 3].map(|c| state(&history, c)),
        [State::Unknown, State::Running, State::Unknown]
    );
    // One that was sent since is not.
    driver.set_now(101);
    driver.sent(task(3), 0, process(2));
    assert_eq!(state(&session.history(), 3), State::Submitted);
}

/// Files of which one goes when it is about to be read, which is said before.
struct Going<'a> {
    files: LocalFiles,
    going: Option<(&'a Path, &'a mut EventLog)>,
}

impl Files for Going<'_> {
    fn list(&mut self) -> io::Result<Vec<FileInfo>> {
        self.files.list()
    }

    fn read(&mut self, name: &str, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        if let Some((path, node)) = self.going.take_if(|(path, _)| path.ends_with(name)) {
            node.dropped(1 << 20, newest_record(path).unwrap());
            fs::remove_file(path)?;
        }
        self.files.read(name, offset, most)
    }
}

#[test]
fn a_task_whose_end_goes_while_it_is_read_is_unknown() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut node = session.log(NODE, Role::Node);
    node.set_now(10);
    node.ended(process(7));
    driver.set_now(100);
    driver.submitted(task(1), TaskKind::Function, &name("f"), false, [].into_iter());
    driver.sent(task(1), 0, process(2));
    let plain = name("f");
    session.log(2, Role::Worker).ran(&ran(task(1), &plain, 150, 5));
    let path = session.path("2.0");
    assert_eq!(newest_record(&path), Some(150));
    let mut history = History::new();
    let mut files = Going { files: session.files(), going: Some((&path, &mut node)) };
    history.update(0, &mut files).unwrap();
    assert_eq!(history.get(task(1)).unwrap().state(), State::Unknown);
}

#[test]
fn many_long_texts_end_a_chunk() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    let plain = name("f");
    for counter in 0..600 {
        let text = format!("{counter}{}", "x".repeat(texts::LONGEST));
        let error = Some(("ValueError", text.as_str()));
        worker.ran(&Ran { error, ..ran(task(counter), &plain, 10, 5) });
    }
    assert!(session.path("2.2").exists());
    for chunk in 0..2 {
        let len = fs::metadata(session.path(&format!("2.{chunk}.text"))).unwrap().len();
        assert!(len < 5 << 20, "{len}");
    }
    assert_eq!(session.history().len(), 600);
}
