//! Files are read in any order and in any number of steps: E-5, E-6.

use std::io;

use oxiray_ids::ProcessId;

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
                owner.failed(task(1), attempt, 1, "killed");
            }
            if attempt < 2 {
                owner.retried(task(1), attempt + 1);
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
            (1, State::Failed, Some(1), 3),
            (0, State::Failed, Some(0), 2),
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
    assert_eq!(rows, [("f", [1, 0, 0, 0, 7, 0]), ("g", [0, 0, 0, 0, 3, 0])]);
}
