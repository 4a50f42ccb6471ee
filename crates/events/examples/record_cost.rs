//! What recording costs: nanoseconds a record, and under a tool that counts, instructions.
//!
//! ```text
//! cargo run --release -p oxiray-events --example record_cost
//! valgrind --tool=callgrind target/release/examples/record_cost submit 100000
//! ```

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use oxiray_events::{EventLog, Ran, Role, TaskKind};
use oxiray_ids::{ActorId, JobId, ProcessId, TaskId};

const KINDS: [&str; 4] = ["nothing", "submit", "send", "run"];

fn record(session: &Path, what: &str, count: u64) {
    let driver = ProcessId::new(0, 1);
    let home = ActorId::home(JobId([1, 0, 0, 0]), driver);
    let number = KINDS.iter().position(|kind| *kind == what).expect("a kind") as u32;
    let mut log = EventLog::new(session, ProcessId::new(0, 1 + number), Role::Driver);
    let name: Arc<str> = "function".into();
    for counter in 0..count {
        let task = std::hint::black_box(TaskId::new(home, driver, counter));
        log.set_now(counter);
        match what {
            "submit" => log.submitted(task, TaskKind::Function, &name, false, std::iter::empty()),
            "send" => log.sent(task, 0, driver),
            "run" => {
                log.begin(task, 0, counter);
                let name = &name;
                let (attempt, start, error) = (0, counter, None);
                log.ran(&Ran { task, attempt, name, start, fetch: 1, execute: 5, store: 1, error });
            }
            _ => {}
        }
    }
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let session = std::env::temp_dir().join(format!("oxiray-cost-{}", std::process::id()));
    std::fs::create_dir(&session)?;
    match arguments.as_slice() {
        [what, count] => record(&session, what, count.parse().expect("a number")),
        _ => {
            for what in KINDS {
                let began = Instant::now();
                record(&session, what, 1_000_000);
                println!("{what}: {:.1} ns", began.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    std::fs::remove_dir_all(&session)
}
