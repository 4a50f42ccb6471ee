//! As many seeds as one likes: whatever programs do, on a handful of nodes in trouble.
//!
//! `cargo run --profile programs -p oxiray-sim --example seeds -- 1 1000000`
//!
//! One that fails is named with its panic, and ends this. Without optimisation (`cargo run`) it is
//! also made as small as it can be, and with `SIM_KEEP_GOING=1` the others follow.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use oxiray_sim::{Plan, Report, run_seeds};

/// What is run between two lines that tell of it.
const AT_ONCE: u64 = 1_000;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let (first, last): (u64, u64) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(1_000));
    // That one is run alone, and once.
    let last = if std::env::var_os("SIM_SEED").is_some() { first } else { last };
    let keep_going = std::env::var_os("SIM_KEEP_GOING").is_some();
    let begin = Instant::now();
    let (mut all, mut failed) = (Report::default(), Vec::new());
    for seed in first..=last {
        match catch_unwind(AssertUnwindSafe(|| run_seeds([seed], Plan::mixed))) {
            Ok(report) => all = all + report,
            Err(_) if keep_going => failed.push(seed),
            Err(_) => std::process::exit(1),
        }
        if seed.is_multiple_of(AT_ONCE) || seed == last {
            let (took, gets, faults) = (begin.elapsed().as_secs(), all.gets, all.faults);
            println!("up to {seed}: {took} s, {gets} values, {faults} of them broken by faults");
        }
    }
    println!("{all:#?}");
    assert!(failed.is_empty(), "{} seeds failed: {failed:?}", failed.len());
}
