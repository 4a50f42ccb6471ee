//! The timeline, and what a million tasks cost in it and in the trace.

use super::*;
use crate::timeline::{self, Filter};
use crate::{State, TaskKind, trace};

/// Nanoseconds from the first moment, so that clocks do not matter.
fn relative(history: &History, from: u64, to: u64, width: u32, filter: &str) -> Vec<Vec<Shown>> {
    let (first, _) = history.extent_ns().unwrap();
    let filter = Filter { name: filter.to_owned() };
    let view = timeline::view(history, first + from, first + to, width, &filter);
    let span = |span: &timeline::Span| {
        let name = view.names[span.name as usize].to_owned();
        (span.start_ns - first, span.duration_ns, name, span.count, span.state)
    };
    view.rows.iter().map(|row| row.spans.iter().map(span).collect()).collect()
}

type Shown = (u64, u64, String, u32, State);

fn shown(start: u64, duration: u64, name: &str, count: u32, state: State) -> Shown {
    (start, duration, name.to_owned(), count, state)
}

#[test]
fn narrow_runs_are_one_span_with_the_name_of_most() {
    let session = Session::new();
    let mut worker = session.log(2, Role::Worker);
    let (f, g) = (name("f"), name("g"));
    let run = |task, name, start, len| Ran { fetch: 0, store: 0, ..ran(task, name, start, len) };
    for counter in 0..10 {
        let which = if counter % 3 == 0 { &g } else { &f };
        worker.ran(&run(task(counter), which, 1000 + counter * 10, 5));
    }
    worker.ran(&run(task(20), &g, 2000, 500));
    let error = Some(("E", "t"));
    worker.ran(&Ran { error, ..run(task(21), &f, 2600, 5) });
    worker.begin(task(22), 0, 2700);
    let history = session.history();
    let done = State::Finished;
    assert_eq!(
        relative(&history, 0, 2000, 20, ""),
        [[
            shown(0, 95, "f", 10, done),
            shown(1000, 500, "g", 1, done),
            shown(1600, 5, "f", 1, State::Failed),
            shown(1700, 300, "?", 1, State::Running),
        ]]
    );
    // Nearer: each by itself.
    let near = relative(&history, 0, 100, 100, "");
    assert_eq!(near[0].len(), 10);
    assert_eq!(near[0][0], shown(0, 5, "g", 1, done));
    // What began before is cut at the edge.
    assert_eq!(relative(&history, 1200, 1300, 10, ""), [[shown(1200, 300, "g", 1, done)]]);
    assert_eq!(relative(&history, 0, 2000, 20, "G")[0].len(), 2);
    assert!(relative(&history, 0, 2000, 20, "nothing").is_empty());
}

/// `cargo nextest run -p oxiray-events --release --run-ignored only` says what a million costs.
#[test]
#[ignore = "a million tasks: a quarter of a gigabyte of files"]
fn a_million_tasks() {
    let session = Session::new();
    let total = 1_000_000;
    let mut driver = session.log(DRIVER, Role::Driver);
    let mut workers: Vec<_> = (2..6).map(|number| session.log(number, Role::Worker)).collect();
    let names: Vec<_> = (0..20).map(|number| name(&format!("function_{number}"))).collect();
    let clock = std::time::Instant::now;
    let began = clock();
    for counter in 0..total {
        let which = &names[counter as usize % 20];
        driver.set_now(counter * 1000);
        driver.submitted(task(counter), TaskKind::Function, which, false, [].into_iter());
        driver.sent(task(counter), 0, ProcessId::new(0, 2 + counter as u32 % 4));
    }
    println!(
        "two records in the driver: {:?} ns a task",
        began.elapsed().as_nanos() as u64 / total
    );
    let began = clock();
    for counter in 0..total {
        let worker = &mut workers[counter as usize % 4];
        worker.begin(task(counter), 0, counter * 1000 + 500);
        worker.ran(&ran(task(counter), &names[counter as usize % 20], counter * 1000 + 500, 3000));
    }
    println!("one in the worker: {:?} ns a task", began.elapsed().as_nanos() as u64 / total);
    let (before, began) = (resident(), clock());
    let mut history = History::new();
    history.update(0, &mut session.files()).unwrap();
    println!("read: {:?}, {} bytes a task", began.elapsed(), (resident() - before) / total);
    assert_eq!(history.len() as u64, total);
    let (first, last) = history.extent_ns().unwrap();
    for (what, from, to) in
        [("all", first, last), ("a hundredth", first, first + (last - first) / 100)]
    {
        let began = clock();
        let view = timeline::view(&history, from, to, 1600, &Filter::default());
        let spans: usize = view.rows.iter().map(|row| row.spans.len()).sum();
        println!("view of {what}: {:?}, {spans} spans", began.elapsed());
    }
    let began = clock();
    assert_eq!(history.summary().len(), 20);
    println!("summary: {:?}", began.elapsed());
    let path = session.0.join("trace.json");
    let began = clock();
    trace::write(&history, last, |_| None, std::fs::File::create(&path).unwrap()).unwrap();
    let size = std::fs::metadata(&path).unwrap().len();
    println!("trace: {:?}, {} MB", began.elapsed(), size >> 20);
}

/// Bytes of memory that this process has.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
