//! Whatever the bytes are, reading ends and does not panic: E-4.

use std::fs::{self, OpenOptions};

use oxiray_ids::{ObjectId, ProcessId};
use oxiray_wire::frame::FailureCode;
use proptest::prelude::*;

use super::*;
use crate::format::{HEADER, Header, Named, Outcome, Record, Running, SLOT};
use crate::{TaskKind, timeline, trace};

fn anything() -> impl Strategy<Value = Record> {
    let named = (any::<u32>(), any::<u64>(), any::<u16>())
        .prop_map(|(home, unique, attempt)| Named { home, unique, attempt });
    let kind =
        prop::sample::select(vec![TaskKind::Function, TaskKind::Method, TaskKind::Constructor]);
    let (time, text) = (any::<u64>(), any::<u32>());
    prop_oneof![
        (named.clone(), time, [text, text], kind, any::<bool>()).prop_map(
            |(task, time, [name, function], kind, waits)| Record::Submitted {
                task,
                time,
                name,
                function,
                kind,
                waits
            }
        ),
        any::<[u8; 28]>().prop_map(|id| Record::Needs(ObjectId(id))),
        any::<[u8; 24]>().prop_map(|id| Record::Parent(TaskId(id))),
        (named.clone(), any::<u64>()).prop_map(|(task, time)| Record::Ready { task, time }),
        (named.clone(), any::<u64>()).prop_map(|(task, time)| Record::Began { task, time }),
        (named.clone(), any::<u64>(), any::<u64>()).prop_map(|(task, time, peer)| Record::Sent {
            task,
            time,
            peer: ProcessId(peer)
        }),
        (named.clone(), any::<u64>(), any::<u64>()).prop_map(|(task, time, peer)| {
            Record::Answered { task, time, peer: ProcessId(peer) }
        }),
        (named.clone(), any::<u64>(), any::<bool>())
            .prop_map(|(task, time, waits)| Record::Retried { task, time, waits }),
        (named.clone(), any::<u64>(), proptest::sample::select(FailureCode::ALL), any::<u32>())
            .prop_map(|(task, time, code, text)| Record::Failed { task, time, code, text }),
        (named.clone(), any::<[u64; 4]>(), any::<[u32; 3]>(), any::<bool>()).prop_map(
            |(task, times, texts, done)| {
                let [start, fetch, execute, store] = times;
                let [name, exception, text] = texts;
                let outcome = if done { Outcome::Done } else { Outcome::Raised };
                Record::Ran { task, start, outcome, fetch, execute, store, name, exception, text }
            }
        ),
        (any::<u64>(), any::<u64>())
            .prop_map(|(process, time)| Record::Ended { process: ProcessId(process), time }),
        (any::<u64>(), any::<u32>(), any::<u64>()).prop_map(|(process, pid, time)| {
            Record::Begins { process: ProcessId(process), pid, role: Role::Worker, time }
        }),
        (any::<u64>(), any::<u64>(), any::<[u8; 24]>(), any::<u16>()).prop_map(
            |(process, start, id, attempt)| {
                let running = Running { start, task: TaskId(id), attempt };
                Record::Left { process: ProcessId(process), running }
            }
        ),
        (any::<u32>(), any::<u64>(), any::<u64>()).prop_map(|(log, process, time)| {
            Record::Given { log, process: ProcessId(process), time }
        }),
        (any::<u64>(), any::<u64>()).prop_map(|(bytes, until)| Record::Dropped { bytes, until }),
        (named, any::<[u64; 2]>(), any::<[u32; 2]>()).prop_map(|(task, times, texts)| {
            let ([start, duration], [name, extra]) = (times, texts);
            Record::Span { task, start, duration, name, extra }
        }),
    ]
}

/// Everything that looks at a history.
fn look_at(session: &Session) -> usize {
    let mut history = History::new();
    let mut files = session.files();
    history.update(0, &mut files).unwrap();
    history.update(0, &mut files).unwrap();
    history.summary();
    for task in history.tasks() {
        assert!(history.get(task.id()).is_some());
        let _ = (task.needs(), task.feeds(), task.parent(), task.attempts().count());
    }
    for (from, to) in [(0, u64::MAX), history.extent_ns().unwrap_or_default(), (5, 2)] {
        timeline::view(&history, from, to, 100, &timeline::Filter::default());
    }
    let mut written = Vec::new();
    let text = |place| crate::texts::read(&mut session.files(), place).unwrap();
    trace::write(&history, 0, text, &mut written).unwrap();
    serde_json::from_slice::<serde_json::Value>(&written).unwrap();
    history.len()
}

/// A session in which everything happens.
fn eventful() -> Session {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut worker = session.log(2, Role::Worker);
    let plain = name("f \"quoted\" </script>");
    for counter in 1..60 {
        driver.set_now(counter * 10);
        let needs = (0..counter % 3).map(|back| task(counter - back).object(1));
        driver.submitted(task(counter), TaskKind::Function, &plain, counter % 2 == 0, needs);
        driver.ready(task(counter), 0);
        driver.sent(task(counter), 0, ProcessId::new(0, 2));
        worker.begin(task(counter), 0, counter * 10 + 3);
        let error = (counter % 5 == 0).then_some(("KeyError", "no\u{1}\n\"words\""));
        worker.ran(&Ran { error, ..ran(task(counter), &plain, counter * 10 + 3, 4) });
        worker.span("mark", counter, 5, "{\"cut");
        if counter % 7 == 0 {
            driver.failed(task(counter), 0, FailureCode::WorkerCrashed, "crashed");
            driver.retried(task(counter), 1, false);
        }
    }
    session
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn records_go_both_ways(record in anything()) {
        let (bytes, len) = record.encode();
        prop_assert_eq!(Record::decode(&bytes[..len]), Some(record));
        prop_assert_eq!(Record::decode(&bytes[..len - SLOT]), None);
    }

    #[test]
    fn any_bytes_decode_to_something_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Record::decode(&bytes);
        let _ = Header::decode(&bytes);
    }

    #[test]
    fn a_torn_note_of_what_runs_is_not_believed(
        words in any::<[u64; 2]>(), at in 0..40usize, by in 1..255u8
    ) {
        let running = Some(Running { start: words[0] | 1, task: task(words[1]), attempt: 3 });
        let header = Header {
            role: Role::Worker,
            process: ProcessId(2),
            pid: 5,
            log: 2,
            to_wall: -3,
            count: 7,
            lost: 0,
            running,
            writer: ProcessId(9),
        };
        let mut bytes = header.encode();
        prop_assert_eq!(Header::decode(&bytes), Some(header));
        bytes[64 + at] ^= by;
        prop_assert_eq!(Header::decode(&bytes).unwrap().running, None);
    }

    #[test]
    fn damaged_files_are_read_as_far_as_they_go(
        file in 0..4usize, cut in prop::option::of(0..70_000u64),
        damage in prop::collection::vec((0..6000usize, any::<u8>()), 0..40),
        filler in prop::collection::vec(anything(), 0..20)
    ) {
        let session = eventful();
        let path = session.path(["1.0", "2.0", "1.0.text", "2.0.text"][file]);
        let mut bytes = fs::read(&path).unwrap();
        for (at, byte) in damage {
            if let Some(old) = bytes.get_mut(at) {
                *old = byte;
            }
        }
        for (record, at) in filler.into_iter().zip((HEADER..).step_by(3 * SLOT)) {
            let (slots, len) = record.encode();
            if let Some(old) = bytes.get_mut(at..at + len) {
                old.copy_from_slice(&slots[..len]);
            }
        }
        fs::write(&path, bytes).unwrap();
        if let Some(cut) = cut {
            OpenOptions::new().write(true).open(&path).unwrap().set_len(cut).unwrap();
        }
        look_at(&session);
    }
}

#[test]
fn what_is_not_damaged_is_all_there() {
    assert_eq!(look_at(&eventful()), 59);
}

#[test]
fn foreign_files_are_left_alone() {
    let session = eventful();
    for foreign in ["3.0", "4294967296.0", "3.x", "x.1", ".1", "3.", "notes.txt", "-1.0", "7.5"] {
        fs::write(session.path(foreign), "not ours").unwrap();
    }
    fs::create_dir(session.path("8.0")).unwrap();
    // Files of one process under the name of another.
    fs::copy(session.path("2.0"), session.path("9.0")).unwrap();
    assert_eq!(look_at(&session), 59);
}
