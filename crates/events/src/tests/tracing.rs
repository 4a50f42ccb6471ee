//! The trace, as its viewers take it: T-1 to T-4.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{TaskKind, trace};

/// Later than all that the tests record.
const NOW: u64 = u64::MAX / 2;

fn written(session: &Session) -> String {
    let mut written = Vec::new();
    let text = |place| crate::texts::read(&mut session.files(), place).unwrap();
    trace::write(&session.history(), NOW, text, &mut written).unwrap();
    String::from_utf8(written).unwrap()
}

pub(super) fn traced(session: &Session) -> Vec<Value> {
    serde_json::from_str(&written(session)).unwrap()
}

fn of_phase<'a>(events: &'a [Value], phase: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["ph"] == phase).collect()
}

fn find<'a>(events: &'a [Value], name: &str) -> &'a Value {
    events.iter().find(|event| event["name"] == name && event["ph"] == "X").unwrap()
}

fn ns(micros: &Value) -> u64 {
    (micros.as_f64().unwrap() * 1000.0).round() as u64
}

fn row(event: &Value) -> (u64, u64) {
    (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap())
}

/// Slices of each row with start and end, by start, those around others first.
type Rows<'a> = BTreeMap<(u64, u64), Vec<(u64, u64, &'a Value)>>;

fn rows(events: &[Value]) -> Rows<'_> {
    let mut rows = Rows::new();
    for slice in of_phase(events, "X") {
        let start = ns(&slice["ts"]);
        rows.entry(row(slice)).or_default().push((start, start + ns(&slice["dur"]), slice));
    }
    for slices in rows.values_mut() {
        slices.sort_by_key(|(start, end, _)| (*start, u64::MAX - end));
    }
    rows
}

/// T-2 and T-3.
pub(super) fn validate(events: &[Value]) {
    let rows = rows(events);
    for slices in rows.values() {
        let mut open: Vec<u64> = Vec::new();
        for (start, end, slice) in slices {
            while open.pop_if(|outer| *outer <= *start).is_some() {}
            assert!(open.last().is_none_or(|outer| end <= outer), "{slice} overlaps: {slices:?}");
            open.push(*end);
        }
    }
    for arrow in events.iter().filter(|event| event["cat"] == "argument") {
        let at = ns(&arrow["ts"]);
        let mut around =
            rows[&row(arrow)].iter().filter(|(start, end, _)| *start <= at && at < *end);
        let (_, _, innermost) = around.next_back().unwrap();
        assert_ne!(innermost["cat"], "part", "{arrow} is bound to {innermost}");
    }
}

#[test]
fn it_has_rows_slices_parts_and_arrows() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut worker = session.log(2, Role::Worker);
    let (make, take) = (name("make"), name("take \"it\""));
    driver.set_now(900_123);
    driver.submitted(task(1), TaskKind::Function, &make, false, [].into_iter());
    let needs = [task(1).object(1)];
    driver.submitted(task(2), TaskKind::Function, &take, true, needs.into_iter());
    worker.ran(&Ran { store: 50_000, ..ran(task(1), &make, 1_000_000, 100_000) });
    let error = Some(("KeyError", "Traceback\n'x'"));
    worker.ran(&Ran { fetch: 20_000, error, ..ran(task(2), &take, 2_000_000, 100_000) });
    worker.span("mark", 2_020_010, 500, "{\"step\":3}");
    let events = traced(&session);
    validate(&events);
    assert_eq!(of_phase(&events, "M").len(), 5);
    let make = find(&events, "make");
    assert_eq!(make["args"]["task_id"], task(1).to_string());
    assert_eq!(make["dur"], 150.01);
    assert_eq!(ns(&find(&events, "store")["dur"]), 50_000);
    assert_eq!(ns(&find(&events, "fetch")["dur"]), 19_999);
    let taken = find(&events, "take \"it\"");
    assert_eq!(taken["args"]["error"], "Traceback\n'x'");
    assert_eq!(taken["args"]["state"], "FAILED");
    assert_eq!(find(&events, "mark")["args"]["extra_data"]["step"], 3);
    let (starts, ends) = (of_phase(&events, "s"), of_phase(&events, "f"));
    assert_eq!((starts.len(), ends.len()), (1, 1));
    assert_eq!(starts[0]["id"], ends[0]["id"]);
    assert_eq!((&starts[0]["ts"], &ends[0]["ts"]), (&make["ts"], &taken["ts"]));
}

/// T-1, to the nanosecond.
#[test]
fn times_count_from_the_first_moment() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut worker = session.log(2, Role::Worker);
    let f = name("f");
    driver.set_now(5_000_000_500);
    driver.submitted(task(1), TaskKind::Function, &f, false, [].into_iter());
    for (counter, start) in [(1, 5_000_001_000), (2, 5_000_001_431)] {
        worker.ran(&Ran { fetch: 1, store: 0, ..ran(task(counter), &f, start, 430) });
    }
    let submitted = session.history().get(task(1)).unwrap().submitted_ns().unwrap();
    let events = traced(&session);
    let start_us = of_phase(&events, "M")[0]["args"]["start_us"].as_u64().unwrap();
    assert_eq!(start_us, submitted / 1000);
    let zero = start_us * 1000;
    let slices = of_phase(&events, "X");
    assert_eq!(ns(&slices[0]["args"]["submitted_us"]), submitted - zero);
    assert_eq!(ns(&slices[0]["ts"]), submitted - zero + 500);
    assert_eq!(ns(&slices[1]["ts"]), ns(&slices[0]["ts"]) + ns(&slices[0]["dur"]));
}

#[test]
fn what_runs_is_drawn_until_now() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    worker.begin(task(1), 0, 1000);
    worker.span("inside", 2000, 10, "");
    worker.span("from before", 500, 1000, "");
    let events = traced(&session);
    validate(&events);
    let running = of_phase(&events, "X").into_iter().find(|it| it["cat"] == "task").unwrap();
    assert_eq!(running["args"]["state"], "RUNNING");
    assert!(running["dur"].as_f64().unwrap() > 1e12);
    assert_eq!(row(find(&events, "inside")), row(running));
}

#[test]
fn spans_of_several_threads_have_rows_of_their_own() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    for (name, start, duration) in
        [("inner", 30, 10), ("first", 0, 100), ("second", 50, 100), ("third", 60, 100)]
    {
        driver.span(name, 1000 + start, duration, "");
    }
    let events = traced(&session);
    validate(&events);
    let tid = |name| row(find(&events, name)).1;
    let pid = u64::from(std::process::id());
    assert_eq!((tid("first"), tid("inner")), (pid, pid));
    assert!(pid < tid("second") && tid("second") < tid("third"));
    let names: Vec<_> =
        of_phase(&events, "M").iter().map(|it| it["args"]["name"].clone()).collect();
    assert!(names.contains(&format!("driver {pid}, thread 2").into()), "{names:?}");
}

/// T-4.
#[test]
fn no_text_ends_with_an_escaped_backslash() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    let odd = name(r#"a\ "b\" \n \\"#);
    let error = Some(("E", r"in C:\"));
    worker.ran(&Ran { error, ..ran(task(1), &odd, 1000, 500) });
    worker.span("span", 1100, 10, r#"{"path": "C:\\", "line": "\n\\n\"", "é": "\u00e9"}"#);
    let written = written(&session);
    assert!(written.contains(r#""a\\ \"b\\\" \\n \\\u005c""#), "{written}");
    assert!(written.contains(r#""in C:\u005c""#) && written.contains(r#""C:\u005c""#), "{written}");
    let events = traced(&session);
    assert_eq!(find(&events, &odd)["args"]["error"], r"in C:\");
    let extra = &find(&events, "span")["args"]["extra_data"];
    assert_eq!((&extra["path"], &extra["line"]), (&r"C:\".into(), &"\n\\n\"".into()));
    assert_eq!(extra["é"], "é");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// T-2 and T-3 hold whatever threads mark while tasks run.
    #[test]
    fn rows_nest(
        tasks in prop::collection::vec((0..20_000_u64, 0..3_u64, 0..40_000_u64, 0..3_u64), 1..6),
        spans in prop::collection::vec((0..200_000_u64, 0..100_000_u64), 0..12),
        runs_on in any::<bool>(),
    ) {
        let session = Session::new();
        let mut driver = session.log(DRIVER, Role::Driver);
        let mut worker = session.log(2, Role::Worker);
        let f = name("f");
        let mut at = 1000;
        for (counter, (gap, fetch, execute, store)) in (1..).zip(tasks) {
            let needs = (counter > 1).then(|| task(counter - 1).object(1));
            driver.submitted(task(counter), TaskKind::Function, &f, false, needs.into_iter());
            let (fetch, store) = (fetch * 7000, store * 7000);
            let ran = Ran { fetch, store, ..ran(task(counter), &f, at + gap, execute) };
            worker.ran(&ran);
            at += gap + fetch + execute + store;
        }
        if runs_on {
            worker.begin(task(100), 0, at);
        }
        for (start, duration) in spans {
            worker.span("span", 1000 + start, duration, "");
        }
        validate(&traced(&session));
    }
}
