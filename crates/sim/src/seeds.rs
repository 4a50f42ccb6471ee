//! Running many seeds, and telling of one that fails: how to see it again, and the smallest plan
//! found that still fails.

use std::any::Any;
use std::cell::Cell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::sync::Once;

use crate::plan::Plan;
use crate::world::{Report, World};

/// No seed: panics are expected.
const QUIET: u64 = u64::MAX;

/// Runs a plan for each seed; what came of all of them. `SIM_SEED` runs that one alone, and
/// `SIM_PLAN`, as it is printed, changes the plan. Panics like the first run that does, after the
/// plan was made as small as it can be, unless `SIM_KEEP_GOING` says that there is no time for that.
pub fn run_seeds(seeds: impl IntoIterator<Item = u64>, plan: impl Fn(u64) -> Plan) -> Report {
    let changes = std::env::var("SIM_PLAN").unwrap_or_default();
    let make = |seed| plan(seed).with(&changes);
    let alone = std::env::var("SIM_SEED").ok();
    if let Some(seed) = alone {
        return run(make(seed.parse().expect("SIM_SEED is a number")));
    }
    seeds.into_iter().fold(Report::default(), |all, seed| all + run(make(seed)))
}

fn run(plan: Plan) -> Report {
    let seed = plan.seed;
    name_seed_of_panics(seed);
    match catch_unwind(AssertUnwindSafe(|| World::new(plan.clone()).run())) {
        Ok(report) => report,
        Err(panic) => {
            if std::env::var_os("SIM_KEEP_GOING").is_none() {
                let least = shrink(&plan, kind(&*panic));
                tell(&format!("As small as was found: SIM_SEED={seed} SIM_PLAN={least}"));
                tell(&format!("{:?}", plan.with(&least)));
            }
            resume_unwind(panic);
        }
    }
}

/// Says something to whoever runs this, if anybody listens.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
}

/// From now on a panic of this thread says which seed it is of: where panics abort, that is all
/// that is left to say.
fn name_seed_of_panics(seed: u64) {
    static ONCE: Once = Once::new();
    SEED.set(seed);
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if SEED.get() != QUIET {
                let seed = SEED.get();
                tell(&format!("seed {seed} fails. To see it again: SIM_SEED={seed}"));
                before(panic);
            }
        }));
    });
}

/// What must hold and did not: how a panic's message begins.
fn kind(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    text.chars().filter(|c| !c.is_ascii_hexdigit()).take(40).collect()
}

/// The changes to a plan that fails by which it is smallest and fails still, in the same way.
fn shrink(plan: &Plan, how: String) -> String {
    SEED.set(QUIET);
    let fails = |changes: &str| {
        let plan = plan.with(changes);
        let run = catch_unwind(AssertUnwindSafe(|| World::new(plan).run()));
        run.is_err_and(|panic| kind(&*panic) == how)
    };
    let mut changes = String::new();
    for (name, value) in plan.numbers() {
        // The smallest value with which it still fails, as far as halving finds it.
        let (mut low, mut high) = (plan.least(name), value);
        if name == "crash_once_in" {
            // Not a size: all or nothing.
            high = if fails(&format!("{changes}{name}=0,")) { 0 } else { value };
        }
        while low < high && name != "crash_once_in" {
            let middle = low + (high - low) / 2;
            let smaller = format!("{changes}{name}={middle},");
            if fails(&smaller) { high = middle } else { low = middle + 1 }
        }
        if high < value {
            changes.push_str(&format!("{name}={high},"));
        }
    }
    SEED.set(plan.seed);
    changes
}
