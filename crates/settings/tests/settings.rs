//! The page is that of the declarations, and reading a variable is what its declaration says.

use std::collections::BTreeSet;
use std::process::Command;

use oxiray_settings::{DEDUP_LOGS, MEMORY_USAGE_THRESHOLD, ROTATION_BACKUP_COUNT, TUNED};
use oxiray_settings::{OURSELVES, Setting, USERS, page};

#[test]
fn the_page_is_up_to_date() {
    let kept = include_str!("../../../docs/settings.md");
    assert!(
        kept == page(),
        "docs/settings.md is not that of the declarations: \
         cargo run -p oxiray-settings --example page > docs/settings.md"
    );
}

#[test]
fn names_are_declared_once_and_say_what_they_do() {
    let all: Vec<&Setting> = USERS.iter().chain(OURSELVES).copied().collect();
    let names: Vec<&str> = all.iter().flat_map(|it| [it.name].into_iter().chain(it.or)).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    for setting in all {
        assert!(setting.says.ends_with('.') && setting.says.len() > 20, "{}", setting.name);
        // A convention of all programs, not of this one.
        let is_ours = setting.name.starts_with("OXIRAY_") || setting.name.starts_with("RAY_");
        assert!(is_ours || setting.name == "NO_COLOR", "{}", setting.name);
        if let Some(other) = setting.or {
            assert_eq!(other.replacen("RAY_", "OXIRAY_", 1), setting.name);
        }
    }
}

/// The environment belongs to a process: each case is one of its own, this test again.
#[test]
fn what_is_said_counts_and_the_rest_is_as_declared() {
    let Ok(expected) = std::env::var("EXPECTED") else {
        let case = |variables: &[(&str, &str)], expected: &str| {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.env_clear().env("EXPECTED", expected).envs(variables.iter().copied());
            child.args(["--exact", "what_is_said_counts_and_the_rest_is_as_declared"]);
            let output = child.output().unwrap();
            assert!(output.status.success(), "{variables:?}: {output:?}");
        };
        case(&[], "true false 0.95 3");
        case(&[("OXIRAY_DEDUP_LOGS", ""), ("OXIRAY_TUNED", "false")], "true false 0.95 3");
        case(&[("RAY_DEDUP_LOGS", "False"), ("OXIRAY_TUNED", "1")], "false true 0.95 3");
        case(&[("RAY_DEDUP_LOGS", "0"), ("OXIRAY_DEDUP_LOGS", "1")], "true false 0.95 3");
        case(&[("RAY_memory_usage_threshold", " 0.5 ")], "true false 0.5 3");
        let refusal = "RAY_memory_usage_threshold must be a number from 0 to 1, not \"2\"";
        case(&[("RAY_memory_usage_threshold", "2")], &format!("true false {refusal} 3"));
        let refusal = "RAY_ROTATION_BACKUP_COUNT must be a whole number, not \"-1\"";
        case(&[("RAY_ROTATION_BACKUP_COUNT", "-1")], &format!("true false 0.95 {refusal}"));
        return;
    };
    let share = MEMORY_USAGE_THRESHOLD.number(0.0..=1.0);
    let share = share.map_or_else(|error| error.to_string(), |share| share.to_string());
    let kept = ROTATION_BACKUP_COUNT.count();
    let kept = kept.map_or_else(|error| error.to_string(), |kept| kept.to_string());
    assert_eq!(format!("{} {} {share} {kept}", DEDUP_LOGS.is_on(), TUNED.is_on()), expected);
}
