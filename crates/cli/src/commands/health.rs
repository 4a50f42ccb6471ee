//! When a node that says nothing is given up: by the environment, or by `--system-config`.

use std::io;

use clap::Args;
use oxiray_settings::{
    HEALTH_CHECK_FAILURE_THRESHOLD, HEALTH_CHECK_INITIAL_DELAY_MS, HEALTH_CHECK_PERIOD_MS,
    HEALTH_CHECK_TIMEOUT_MS, Setting,
};
use oxiray_wire::cluster::HealthConfig;
use serde_json::{Map, Value};

use crate::commands::refuse;
use crate::print::remark;

/// Ray's name of its settings, in the environment.
const PREFIX: &str = "RAY_";
const ALL: [&Setting; 4] = [
    &HEALTH_CHECK_INITIAL_DELAY_MS,
    &HEALTH_CHECK_PERIOD_MS,
    &HEALTH_CHECK_TIMEOUT_MS,
    &HEALTH_CHECK_FAILURE_THRESHOLD,
];

/// What the control service goes by.
#[derive(Args, Clone, Default, Debug)]
pub(super) struct SystemConfig {
    /// Settings by Ray's names, with --head, as JSON: '{"health_check_period_ms": 1000}'.
    #[arg(long, value_name = "JSON")]
    system_config: Option<String>,
}

impl SystemConfig {
    pub(super) fn is_given(&self) -> bool {
        self.system_config.is_some()
    }

    /// What it says of health, and else the environment does.
    pub(super) fn health(&self) -> io::Result<HealthConfig> {
        let given = self.given()?;
        let number = |setting: &'static Setting| match given.get(name(setting)) {
            None => setting.count().map_err(io::Error::other),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(number),
                None => refuse(format!(
                    "--system-config: {} must be a whole number, not {value}",
                    name(setting)
                )),
            },
        };
        Ok(HealthConfig {
            initial_delay_ms: number(ALL[0])?,
            period_ms: number(ALL[1])?,
            timeout_ms: number(ALL[2])?,
            failure_threshold: number(ALL[3])?,
        })
    }

    /// Says what of it has no effect.
    pub(super) fn warn(&self) -> io::Result<()> {
        let is_known = |key: &str| ALL.iter().any(|setting| name(setting) == key);
        let given = self.given()?;
        let other: Vec<&str> =
            given.keys().map(String::as_str).filter(|key| !is_known(key)).collect();
        if !other.is_empty() {
            remark(&format!("Note: --system-config: no effect here: {}", other.join(", ")));
        }
        Ok(())
    }

    fn given(&self) -> io::Result<Map<String, Value>> {
        let Some(text) = &self.system_config else {
            return Ok(Map::new());
        };
        match serde_json::from_str(text) {
            Ok(Value::Object(given)) => Ok(given),
            _ => refuse(format!(
                "--system-config must be JSON, '{{\"name\": number}}', not {text:?}"
            )),
        }
    }
}

/// `health_check_period_ms` of `RAY_health_check_period_ms`.
fn name(setting: &Setting) -> &'static str {
    setting.name.strip_prefix(PREFIX).unwrap_or(setting.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> io::Result<HealthConfig> {
        SystemConfig { system_config: Some(text.to_owned()) }.health()
    }

    #[test]
    fn what_is_said_counts_and_else_what_is_usual() {
        let health = of(r#"{"health_check_period_ms": 250, "gcs_server_port": 7}"#).expect("good");
        assert_eq!(health.period_ms, 250);
        assert_eq!((health.timeout_ms, health.failure_threshold), (10_000, 5));
    }

    #[test]
    fn nonsense_is_said_to_be() {
        let why = |text: &str| of(text).expect_err("is refused").to_string();
        assert!(why("[1]").contains("must be JSON"));
        assert!(why("{").contains("must be JSON"));
        let negative = why(r#"{"health_check_timeout_ms": -1}"#);
        assert!(negative.contains("health_check_timeout_ms must be a whole number, not -1"));
    }
}
