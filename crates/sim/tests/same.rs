//! The same seed gives the same run, in another process, too: nothing that is emitted follows the
//! order of a table whose hashes are random.

use std::process::Command;

use oxiray_sim::{Plan, World};

/// Set in the process that is to say what it saw.
const SAYS: &str = "SIM_SAYS_WHAT_IT_SAW";

/// Everything that happened in some runs, as a number (FNV-1a).
fn digest() -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for seed in 1..=60 {
        World::new(Plan::mixed(seed)).run_watched(|at, what| {
            for byte in format!("{at} {what:?}").bytes() {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        });
    }
    digest
}

#[test]
fn the_same_seeds_give_the_same_runs_in_another_process() {
    let ours = format!("saw {:x}", digest());
    if std::env::var_os(SAYS).is_some() {
        return println!("{ours}");
    }
    let mut again = Command::new(std::env::current_exe().expect("a program"));
    let name = "the_same_seeds_give_the_same_runs_in_another_process";
    let said = again.args(["--exact", name, "--nocapture"]).env(SAYS, "1").output().expect("runs");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains(&ours), "{ours}, but the other one: {said}");
}
