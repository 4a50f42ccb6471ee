//! What a node has to offer: by its arguments, else by what the machine has.
//!
//! The same rules as `init()`'s, in `_init_arguments.py`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use clap::Args;
use oxiray_settings::{
    MEMORY_USAGE_THRESHOLD, SPILLING_DIRECTORY, STORE_FULL_TIMEOUT_S, VERBOSE_SPILL_LOGS,
};
use oxiray_sys::machine::MemoryReader;
use oxiray_wire::control::{Amount, NodeConfig, UNIT};

use crate::commands::refuse;

/// Share of the memory that tasks may ask for.
const MEMORY_SHARE: f64 = 0.7;
/// Share of the memory for objects.
const STORE_SHARE: f64 = 0.3;
const LEAST_STORE: u64 = 75 << 20;
/// More waiting workers than this at the start cost more than they save.
const MOST_PRESTARTED: u32 = 64;

/// What the node has.
#[derive(Args, Clone, Default, Debug)]
pub(super) struct Offer {
    /// CPUs to schedule by; may exceed the cores [default: the usable cores].
    #[arg(long)]
    num_cpus: Option<u32>,
    /// GPUs to schedule by [default: those found].
    #[arg(long)]
    num_gpus: Option<u32>,
    /// Bytes of memory that tasks may ask for [default: 70 % of the memory].
    #[arg(long)]
    memory: Option<u64>,
    /// Custom resources, as JSON: '{"tool": 2}'.
    #[arg(long, value_name = "JSON")]
    resources: Option<String>,
    /// What the node is like: key=value,key=value.
    #[arg(long)]
    labels: Option<String>,
    /// Bytes of shared memory for objects [default: 30 % of the memory].
    #[arg(long)]
    object_store_memory: Option<u64>,
    /// Where objects go when the store is full: a directory or a URL [default: the node's own].
    #[arg(long)]
    object_spilling_directory: Option<String>,
    /// The kernel gives tasks and actors the memory= and num_cpus= that they ask for, and no more.
    #[arg(long)]
    enforce: bool,
}

impl Offer {
    /// What the node is like.
    pub(super) fn labels(&self) -> io::Result<BTreeMap<String, String>> {
        oxiray_scheduler::parse_labels(self.labels.as_deref().unwrap_or_default())
            .map_err(|error| io::Error::other(format!("--labels: {error}")))
    }

    /// The part of the configuration that says what the node has.
    pub(super) fn config(&self, ip: &str, is_head: bool) -> io::Result<NodeConfig> {
        let memory = MemoryReader::new().limit();
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let cpus = self.num_cpus.unwrap_or(cores);
        let store = self.store(memory)?;
        let mut amounts = self.custom()?;
        let mut add = |name: &str, amount: u64| {
            if amount > 0 {
                amounts.insert(name.into(), amount.saturating_mul(UNIT));
            }
        };
        add("CPU", cpus.into());
        add("GPU", self.num_gpus.unwrap_or_else(gpus).into());
        add("memory", self.memory.unwrap_or((memory as f64 * MEMORY_SHARE) as u64));
        add("object_store_memory", store);
        add(&format!("node:{ip}"), 1);
        add("node:__internal_head__", is_head.into());
        let resources = amounts.into_iter().map(|(name, amount)| Amount { name, amount });
        let patience = STORE_FULL_TIMEOUT_S.number(0.0..=1e6).map_err(io::Error::other)?;
        Ok(NodeConfig {
            resources: resources.collect(),
            object_store_memory: store,
            prestart_workers: cpus.min(MOST_PRESTARTED),
            memory_usage_threshold: MEMORY_USAGE_THRESHOLD
                .number(0.0..=1.0)
                .map_err(io::Error::other)?,
            store_patience_ms: (patience * 1e3) as u64,
            tell_spilling: VERBOSE_SPILL_LOGS.is_on(),
            spill_to: self.spill_to()?,
            enforce: self.enforce,
            ..NodeConfig::default()
        })
    }

    fn store(&self, memory: u64) -> io::Result<u64> {
        let chosen = ((memory as f64 * STORE_SHARE) as u64).max(LEAST_STORE);
        let store = self.object_store_memory.unwrap_or(chosen);
        if store < LEAST_STORE {
            return refuse(format!(
                "--object-store-memory={store}: the least is {LEAST_STORE} bytes"
            ));
        }
        if store > memory {
            return refuse(format!(
                "--object-store-memory={store} is more than this machine's memory, {memory} bytes"
            ));
        }
        Ok(store)
    }

    fn custom(&self) -> io::Result<BTreeMap<String, u64>> {
        let Some(text) = &self.resources else { return Ok(BTreeMap::new()) };
        let wrong = |what: String| io::Error::other(format!("--resources: {what}"));
        let parsed: BTreeMap<String, f64> = serde_json::from_str(text).map_err(|error| {
            wrong(format!("not JSON of names and amounts, such as '{{\"tool\": 2}}': {error}"))
        })?;
        let mut amounts = BTreeMap::new();
        for (name, amount) in parsed {
            match name.as_str() {
                "" => return Err(wrong("a name is empty".into())),
                "CPU" => return Err(wrong("use --num-cpus instead of CPU".into())),
                "GPU" => return Err(wrong("use --num-gpus instead of GPU".into())),
                "memory" => return Err(wrong("use --memory instead".into())),
                "object_store_memory" => {
                    return Err(wrong("use --object-store-memory instead".into()));
                }
                marker if marker.starts_with("node:") => {
                    return Err(wrong(format!("{marker:?} is set by the engine")));
                }
                _ => {}
            }
            if !(0.0..1e15).contains(&amount) {
                return Err(wrong(format!("{name:?} must be nonnegative, not {amount}")));
            }
            let units = (amount * UNIT as f64).round() as u64;
            if units > 0 {
                amounts.insert(name, units);
            }
        }
        Ok(amounts)
    }

    fn spill_to(&self) -> io::Result<Vec<String>> {
        let from_environment = SPILLING_DIRECTORY.text();
        let Some(target) = self.object_spilling_directory.clone().or(from_environment) else {
            return Ok(Vec::new());
        };
        if target.contains("://") {
            return Ok(vec![target]);
        }
        Ok(vec![std::path::absolute(target)?.display().to_string()])
    }
}

/// The GPUs of this machine that its programs may use, as `_devices.py` counts them.
fn gpus() -> u32 {
    if let Ok(visible) = std::env::var("CUDA_VISIBLE_DEVICES") {
        return match visible.trim() {
            "" | "-1" | "NoDevFiles" => 0,
            list => list.split(',').count() as u32,
        };
    }
    Path::new("/proc/driver/nvidia/gpus").read_dir().map_or(0, |entries| entries.count() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(offer: &Offer) -> BTreeMap<String, u64> {
        let config = offer.config("10.0.0.1", true).unwrap();
        config.resources.into_iter().map(|amount| (amount.name, amount.amount)).collect()
    }

    #[test]
    fn arguments_come_before_the_machine() {
        let offer = Offer {
            num_cpus: Some(3),
            num_gpus: Some(0),
            memory: Some(1000),
            resources: Some("{\"tool\": 0.5, \"none\": 0}".into()),
            object_store_memory: Some(80 << 20),
            ..Offer::default()
        };
        let amounts = amounts(&offer);
        assert_eq!(amounts["CPU"], 3 * UNIT);
        assert_eq!(amounts["tool"], UNIT / 2);
        assert_eq!(amounts["memory"], 1000 * UNIT);
        assert_eq!(amounts["node:10.0.0.1"], UNIT);
        assert_eq!(amounts["node:__internal_head__"], UNIT);
        assert!(!amounts.contains_key("GPU") && !amounts.contains_key("none"));
    }

    #[test]
    fn wrong_arguments_are_named() {
        let says = |offer: Offer| match offer.config("10.0.0.1", false) {
            Ok(_) => offer.labels().unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        let resources = |text: &str| Offer { resources: Some(text.into()), ..Offer::default() };
        assert!(says(resources("tool")).contains("--resources"));
        assert!(says(resources("{\"CPU\": 1}")).contains("--num-cpus"));
        assert!(says(resources("{\"x\": -1}")).contains("nonnegative"));
        let small = Offer { object_store_memory: Some(1), ..Offer::default() };
        assert!(says(small).contains("--object-store-memory"));
        let labels = Offer { labels: Some("a".into()), ..Offer::default() };
        assert!(says(labels).contains("--labels"));
    }
}
