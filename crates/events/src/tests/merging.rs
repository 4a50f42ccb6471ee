//! Files are read in any order and in any number of steps: E-5, E-6.

use std::io;

use oxiray_ids::ProcessId;
use oxiray_wire::frame::FailureCode;

use super::*;
use crate::{FileInfo, Files, State, TaskKind};

/// Gives at most `most` bytes at once, and counts what it gave.
struct Sparing {
    files: LocalFiles,
    most: usize,
    given: usize,
}

impl Files for Sparing {
    fn list(&mut self) -> io::Result<Vec<FileInfo>> {
        self.files.list()
    }

    fn read(&mut self, name: &str, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        let bytes = self.files.read(name, offset, most.min(self.most))?;
        self.given += bytes.len();
        Ok(bytes)
    }
}

#[test]
fn attempts_are_told_apart_in_whatever_order_their_files_are_read() {
    // The driver's number decides which of the files is read first.
    for driver in [1, 9] {
        let session = Session::new();
        let mut owner = session.log(driver, Role::Driver);
        let plain = name("f");
        owner.set_now(1);
        owner.submitted(task(1), TaskKind::Function, &plain, false, [].into_iter());
        let error = Some(("OSError", "no"));
        for attempt in 0..3 {
            owner.sent(task(1), attempt, ProcessId::new(0, 2 + u32::from(attempt)));
            let mut worker = session.log(2 + u32::from(attempt), Role::Worker);
            let start = 100 + u64::from(attempt);
            match attempt {
                // Killed in the second attempt.
                1 => worker.begin(task(1), attempt, start),
                0 => worker.ran(&Ran { attempt, error, ..ran(task(1), &plain, start, 5) }),
                _ => worker.ran(&Ran { attempt, ..ran(task(1), &plain, start, 5) }),
            }
            if attempt == 1 {
                owner.failed(task(1), attempt, FailureCode::WorkerCrashed, "killed");
            }
            if attempt < 2 {
                owner.retried(task(1), attempt + 1, false);
            }
        }
        let history = session.history();
        let found = history.get(task(1)).unwrap();
        assert_eq!(found.state(), State::Finished);
        let attempts: Vec<_> = found
            .attempts()
            .map(|attempt| {
                let code = attempt.failure().map(|failure| failure.code);
                (attempt.number(), attempt.state(), code, attempt.worker().unwrap().id.number())
            })
            .collect();
        let expected = [
            (2, State::Finished, None, 4),
            (1, State::Failed, Some(FailureCode::WorkerCrashed), 3),
            (0, State::Failed, Some(FailureCode::TaskError), 2),
        ];
        assert_eq!(attempts, expected);
    }
}

#[test]
fn how_much_is_given_at_once_does_not_matter() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    let names = [name("even"), name("odd")];
    for counter in 0..500 {
        worker.ran(&ran(task(counter), &names[counter as usize % 2], counter + 1, 5));
    }
    for most in [1, 31, 100] {
        let mut files = Sparing { files: session.files(), most, given: 0 };
        let mut history = History::new();
        history.update(0, &mut files).unwrap();
        assert_eq!(history.len(), 500);
        assert_eq!(history.get(task(499)).unwrap().name(), "odd");
    }
}

#[test]
fn only_what_is_new_is_read() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    let plain = name("f");
    for counter in 0..3000 {
        worker.ran(&ran(task(counter), &plain, counter + 1, 5));
    }
    let mut files = Sparing { files: session.files(), most: 1 << 20, given: 0 };
    let mut history = History::new();
    assert!(history.update(0, &mut files).unwrap());
    assert!(files.given > 3000 * 64);
    files.given = 0;
    assert!(!history.update(0, &mut files).unwrap());
    worker.ran(&ran(task(5000), &plain, 9000, 5));
    assert!(history.update(0, &mut files).unwrap());
    assert_eq!(history.len(), 3001);
    assert!(files.given < 1000, "{} bytes", files.given);
}

#[test]
fn a_summary_counts_by_name() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    let (f, g) = (name("f"), name("g"));
    for counter in 0..10 {
        worker.ran(&ran(task(counter), if counter < 7 { &f } else { &g }, counter + 1, 5));
    }
    worker.submitted(task(50), TaskKind::Function, &f, true, [].into_iter());
    let history = session.history();
    let rows: Vec<_> = history.summary().iter().map(|row| (row.name, row.states)).collect();
    assert_eq!(rows, [("f", [1, 0, 0, 0, 7, 0, 0, 0]), ("g", [0, 0, 0, 0, 3, 0, 0, 0])]);
}

/// Fails once, at the read whose turn it is.
struct Failing {
    files: LocalFiles,
    reads: usize,
    fails_at: usize,
}

impl Files for Failing {
    fn list(&mut self) -> io::Result<Vec<FileInfo>> {
        self.files.list()
    }

    fn read(&mut self, name: &str, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        self.reads += 1;
        match self.reads == self.fails_at {
            true => Err(io::Error::other("too many files are being read")),
            false => self.files.read(name, offset, most),
        }
    }
}

/// What a history says, in a form that can be compared.
fn told(history: &History) -> Vec<String> {
    let mut tasks: Vec<String> = history
        .tasks()
        .map(|task| {
            let attempts = task.attempts().map(|attempt| {
                let failure = attempt.failure().map(|failure| (failure.error_type(), failure.text));
                (attempt.number(), attempt.state(), attempt.parts_ns(), failure)
            });
            let attempts: Vec<_> = attempts.collect();
            format!("{} {} {:?} {attempts:?}", task.id(), task.name(), task.needs())
        })
        .collect();
    tasks.sort_unstable();
    let runs = |process: &crate::Process| (process.id, process.runs.len(), process.spans.len());
    let mut processes: Vec<_> = history.processes().iter().map(runs).collect();
    processes.sort_unstable();
    tasks.push(format!("{processes:?}, {} failures", history.failures.len()));
    tasks
}

#[test]
fn a_read_that_fails_loses_nothing() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    for number in 2..5 {
        let mut worker = session.log(number, Role::Worker);
        for counter in 0..400 {
            let id = task(u64::from(number) * 1000 + counter);
            let plain = name(&format!("f{}", counter % 7));
            let needs = [task(counter).object(1)];
            driver.submitted(id, TaskKind::Function, &plain, true, needs.into_iter());
            driver.ready(id, 0);
            driver.sent(id, 0, ProcessId::new(0, number));
            worker.begin(id, 0, 100 + counter);
            let long = format!("{counter} {}", "x".repeat(300));
            let error = (counter % 3 == 0).then_some(("KeyError", long.as_str()));
            worker.ran(&Ran { error, ..ran(id, &plain, 100 + counter, 5) });
            worker.span("mark", 100 + counter, 3, "");
        }
    }
    let mut files = Failing { files: session.files(), reads: 0, fails_at: 0 };
    let mut clean = History::new();
    clean.update(0, &mut files).unwrap();
    let (reads, clean) = (files.reads, told(&clean));
    assert!(reads > 20, "{reads}");
    for fails_at in 1..=reads {
        let mut files = Failing { files: session.files(), reads: 0, fails_at };
        let mut history = History::new();
        history.update(0, &mut files).unwrap_err();
        history.update(0, &mut files).unwrap();
        assert_eq!(told(&history), clean, "failed at read {fails_at}");
    }
}

#[test]
fn what_one_process_wrote_is_read_though_that_of_another_cannot_be() {
    let session = Session::new();
    let plain = name("f");
    for number in 2..5 {
        session.log(number, Role::Worker).ran(&ran(task(u64::from(number)), &plain, 5, 5));
    }
    let mut files = Failing { files: session.files(), reads: 0, fails_at: 1 };
    let mut history = History::new();
    history.update(0, &mut files).unwrap_err();
    assert_eq!(history.len(), 2);
}

#[test]
fn processes_that_ended_are_not_read_again() {
    let session = Session::new();
    let mut node = session.log(0, Role::Node);
    let plain = name("f");
    for number in 2..50 {
        session.log(number, Role::Worker).ran(&ran(task(u64::from(number)), &plain, 5, 5));
        node.ended(ProcessId::new(0, number));
    }
    let mut files = Failing { files: session.files(), reads: 0, fails_at: 0 };
    let mut history = History::new();
    history.update(0, &mut files).unwrap();
    assert_eq!(history.len(), 48);
    files.reads = 0;
    history.update(0, &mut files).unwrap();
    assert!(files.reads < 5, "{} reads", files.reads);
}

/// Something happens between the list of files and the first read of one.
struct Meanwhile<F: FnMut()> {
    files: LocalFiles,
    happens: Option<F>,
}

impl<F: FnMut()> Files for Meanwhile<F> {
    fn list(&mut self) -> io::Result<Vec<FileInfo>> {
        let listed = self.files.list();
        if let Some(mut happens) = self.happens.take() {
            happens();
        }
        listed
    }

    fn read(&mut self, name: &str, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        self.files.read(name, offset, most)
    }
}

#[test]
fn what_a_process_did_last_is_read_before_its_end_is_believed() {
    let session = Session::new();
    let mut node = session.log(0, Role::Node);
    let mut worker = session.log(2, Role::Worker);
    let plain = name("f");
    node.ended(ProcessId::new(0, 9));
    worker.begin(task(1), 0, 5);
    let mut history = session.history();
    // It goes over several chunks that were not there when files were listed.
    let happens = || {
        for counter in 1..2000 {
            worker.ran(&ran(task(counter), &plain, 5 + counter, 5));
        }
        node.ended(ProcessId::new(0, 2));
    };
    let mut files = Meanwhile { files: session.files(), happens: Some(happens) };
    history.update(0, &mut files).unwrap();
    assert_eq!(history.len(), 1999);
    assert!(history.tasks().all(|task| task.state() == State::Finished));
}
