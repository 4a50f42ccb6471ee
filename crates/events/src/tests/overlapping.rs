//! Processes that run several calls at once: each in a lane, none over another.

use super::tracing::{traced, validate};
use super::*;
use crate::timeline::{self, Filter};
use crate::{State, TaskKind};

/// Numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A worker that begins and ends `calls` calls, `most` at once, and leaves `unended` of them.
fn live(session: &Session, dice: &mut Dice, calls: u64, most: usize, unended: usize) {
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut worker = session.log(2, Role::Worker);
    let (method, mut now, mut next) = (name("method"), 1_000_000, 0);
    let mut running: Vec<(u64, u64)> = Vec::new();
    loop {
        now += 1 + dice.below(30_000);
        let begins = next < calls && (running.is_empty() || dice.below(2) == 0);
        if begins && running.len() < most {
            driver.set_now(now);
            let needs = (next > 0).then(|| task(dice.below(next)).object(1));
            driver.submitted(task(next), TaskKind::Function, &method, false, needs.into_iter());
            worker.began(task(next), 0, now);
            running.push((next, now));
            next += 1;
        } else if next < calls || running.len() > unended {
            let (call, start) = running.swap_remove(dice.below(running.len() as u64) as usize);
            worker.act_for(Some(task(call)), true);
            let marked = (now - start) / 3;
            worker.span("marked", start + marked, marked, "");
            let (fetch, store) = (dice.below(15_000).min(now - start), 0);
            let execute = now - start - fetch;
            worker.ran(&Ran { fetch, store, ..ran(task(call), &method, start, execute) });
        } else {
            return;
        }
    }
}

#[test]
fn no_span_of_a_row_is_drawn_over_another() {
    let mut dice = Dice(20_261_117);
    for (most, unended) in [(1, 0), (2, 1), (5, 2), (30, 30), (150, 120)] {
        let session = Session::new();
        live(&session, &mut dice, 400, most, unended);
        let history = session.history();
        let (first, last) = history.extent_ns().unwrap();
        let mut most_rows = 0;
        for part in 0..8 {
            let length = (last - first) / 8;
            let (from, width) = (first + part * length, 20 + 200 * part as u32);
            let view = timeline::view(&history, from, from + length, width, &Filter::default());
            for row in &view.rows {
                let mut ends = 0;
                for span in &row.spans {
                    assert!(span.start_ns >= ends, "{most} at once: {:?}", row.spans);
                    ends = span.start_ns + span.duration_ns;
                }
            }
            most_rows = most_rows.max(view.rows.len());
        }
        assert!(most_rows <= most, "{most_rows} rows of {most} calls at once");
        assert_eq!(most_rows > 1, most > 1);
        let whole = timeline::view(&history, first, last, 1000, &Filter::default());
        let spans = whole.rows.iter().flat_map(|row| &row.spans);
        assert_eq!(spans.map(|span| span.count).sum::<u32>(), 400, "each call is somewhere");
    }
}

/// T-2 and T-3.
#[test]
fn a_trace_has_a_row_for_each_call_at_once() {
    let mut dice = Dice(7);
    for (most, unended) in [(2, 1), (7, 3), (40, 0)] {
        let session = Session::new();
        live(&session, &mut dice, 300, most, unended);
        let events = traced(&session);
        validate(&events);
        let tids: std::collections::BTreeSet<u64> = events
            .iter()
            .filter(|event| event["cat"] == "task")
            .filter_map(|e| e["tid"].as_u64())
            .collect();
        assert!((2..=most).contains(&tids.len()), "{} rows of {most} calls at once", tids.len());
        let of_task = |event: &&serde_json::Value| event["cat"] == "profile";
        for span in events.iter().filter(of_task) {
            let same = |other: &&serde_json::Value| {
                other["cat"] == "task" && other["args"]["task_id"] == span["args"]["task_id"]
            };
            let around = events.iter().find(same).unwrap();
            if span["dur"].as_f64() > Some(0.0) && span["tid"] != around["tid"] {
                // Only where it would lie across the part of a task that is drawn by itself.
                assert!(around["args"]["fetch_us"].as_f64() >= Some(10.0), "{span} of {around}");
            }
        }
    }
}

#[test]
fn what_was_cancelled_says_so() {
    let session = Session::new();
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut worker = session.log(2, Role::Worker);
    let f = name("f");
    for number in 1..4 {
        driver.submitted(task(number), TaskKind::Function, &f, false, [].into_iter());
    }
    let error = Some(("TaskCancelledError", "it was cancelled"));
    worker.ran(&Ran { error, ..ran(task(1), &f, 1000, 500) });
    let code = oxiray_wire::frame::FailureCode::Cancelled;
    driver.failed(task(1), 0, code, "it was cancelled");
    driver.failed(task(2), 0, code, "it was cancelled");
    worker.ran(&ran(task(3), &f, 3000, 500));
    let history = session.history();
    let states = [1, 2, 3].map(|number| history.get(task(number)).unwrap().state());
    assert_eq!(states, [State::Cancelled, State::Cancelled, State::Finished]);
    assert!(State::Cancelled.is_end() && State::Cancelled.has_failed());
    let (first, last) = history.extent_ns().unwrap();
    let view = timeline::view(&history, first, last, 1000, &Filter::default());
    let shown: Vec<State> = view.rows[0].spans.iter().map(|span| span.state).collect();
    assert_eq!(shown, [State::Cancelled, State::Finished]);
}
