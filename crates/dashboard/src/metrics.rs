//! Figures for Prometheus, in its text format.

use std::collections::HashSet;
use std::fmt::Write as _;

use oxiray_observe::{Query, Resource};
use serde_json::Value;

use crate::source::{Answer, Source};
use crate::user_metrics;

/// What there is, as `# HELP` says it. Grafana's dashboard in `docs/grafana` uses these names.
const METRICS: [(&str, &str); 14] = [
    ("oxiray_nodes", "Nodes by state."),
    ("oxiray_resource_total", "What a node has, by resource."),
    ("oxiray_resource_available", "What a node has free, by resource."),
    ("oxiray_tasks", "Tasks by state, since the session began."),
    ("oxiray_actors", "Actors by state."),
    ("oxiray_object_store_size_bytes", "Shared memory for objects, by node."),
    ("oxiray_object_store_used_bytes", "Shared memory in use, by node."),
    ("oxiray_object_store_objects", "Objects in shared memory, by node."),
    ("oxiray_object_store_disk_bytes", "Objects on disk, by node."),
    ("oxiray_spilled_bytes_total", "Written to disk since the node started, by node."),
    ("oxiray_restored_bytes_total", "Read back from disk since the node started, by node."),
    ("oxiray_workers", "Processes by node and type."),
    ("oxiray_process_memory_bytes", "Resident memory of a process."),
    ("oxiray_node_memory_bytes", "Memory of a node's machine, used and total."),
];

/// More processes than this are not told one by one.
const MOST_PROCESSES: usize = 10_000;

/// All figures.
pub(crate) fn text(source: &mut dyn Source) -> Answer<String> {
    let cluster = source.cluster()?;
    let every = Query { limit: Some(MOST_PROCESSES), ..Query::default() };
    let workers = source.list(Resource::Workers, &every)?;
    let mut samples = Samples::default();
    for (metric, counts) in [("oxiray_tasks", "tasks"), ("oxiray_actors", "actors")] {
        for (state, count) in fields(&cluster[counts]) {
            samples.add(metric, &[("state", state)], count);
        }
    }
    for state in ["ALIVE", "DRAINING", "DEAD"] {
        let count = rows(&cluster["nodes"]).filter(|node| node["state"] == state).count();
        samples.add("oxiray_nodes", &[("state", state)], &count.into());
    }
    for node in rows(&cluster["nodes"]).filter(|node| node["state"] != "DEAD") {
        samples.add_node(node);
    }
    for worker in rows(&workers["rows"]).filter(|worker| worker["is_alive"] != false) {
        let of = |key: &str| worker[key].as_str().unwrap_or_default();
        let pid = worker["pid"].to_string();
        let labels = [("node_id", of("node_id")), ("type", of("worker_type")), ("pid", &pid)];
        samples.count("oxiray_workers", &labels[..2]);
        samples.add("oxiray_process_memory_bytes", &labels, &worker["rss"]);
    }
    let alive: HashSet<&str> = rows(&workers["rows"])
        .filter(|worker| worker["is_alive"] != false)
        .filter_map(|worker| worker["worker_id"].as_str())
        .collect();
    Ok(samples.text() + &user_metrics::text(&source.figures()?, &alive))
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn fields(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

/// Lines, by metric.
#[derive(Default)]
struct Samples {
    lines: Vec<(&'static str, String, f64)>,
}

impl Samples {
    /// What is not known, null, is left out.
    fn add(&mut self, metric: &'static str, labels: &[(&str, &str)], value: &Value) {
        if let Some(number) = value.as_f64() {
            self.lines.push((metric, show_labels(labels), number));
        }
    }

    fn count(&mut self, metric: &'static str, labels: &[(&str, &str)]) {
        let labels = show_labels(labels);
        match self.lines.iter_mut().find(|line| line.0 == metric && line.1 == labels) {
            Some(line) => line.2 += 1.0,
            None => self.lines.push((metric, labels, 1.0)),
        }
    }

    fn add_node(&mut self, node: &Value) {
        let id = node["node_id"].as_str().unwrap_or_default();
        for (metric, key) in [
            ("oxiray_resource_total", "resources_total"),
            ("oxiray_resource_available", "resources_available"),
        ] {
            for (resource, amount) in fields(&node[key]) {
                self.add(metric, &[("node_id", id), ("resource", resource)], amount);
            }
        }
        for (metric, key) in [
            ("oxiray_object_store_size_bytes", "store_size"),
            ("oxiray_object_store_used_bytes", "store_used"),
            ("oxiray_object_store_objects", "store_objects"),
            ("oxiray_object_store_disk_bytes", "disk_bytes"),
            ("oxiray_spilled_bytes_total", "spilled_bytes"),
            ("oxiray_restored_bytes_total", "restored_bytes"),
        ] {
            self.add(metric, &[("node_id", id)], &node[key]);
        }
        for (part, key) in [("used", "memory_used"), ("total", "memory_total")] {
            self.add("oxiray_node_memory_bytes", &[("node_id", id), ("part", part)], &node[key]);
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (metric, about) in METRICS {
            let kind = if metric.ends_with("_bytes_total") { "counter" } else { "gauge" };
            let _ = writeln!(text, "# HELP {metric} {about}\n# TYPE {metric} {kind}");
            for (_, labels, value) in self.lines.iter().filter(|line| line.0 == metric) {
                let _ = writeln!(text, "{metric}{labels} {value}");
            }
        }
        text
    }
}

/// `{a="b",c="d"}`; a name can have anything in it.
pub(crate) fn show_labels(labels: &[(&str, &str)]) -> String {
    let shown: Vec<String> = labels
        .iter()
        .map(|(name, value)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{name}=\"{value}\"")
        })
        .collect();
    format!("{{{}}}", shown.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let shown = show_labels(&[("resource", "a\"b\\c\nd")]);
        assert_eq!(shown, r#"{resource="a\"b\\c\nd"}"#);
    }

    #[test]
    fn metrics_are_told_once_each() {
        let mut samples = Samples::default();
        samples.count("oxiray_workers", &[("type", "WORKER")]);
        samples.count("oxiray_workers", &[("type", "WORKER")]);
        samples.add("oxiray_tasks", &[("state", "X")], &Value::Null);
        let text = samples.text();
        assert!(text.contains("oxiray_workers{type=\"WORKER\"} 2\n"));
        assert!(!text.contains("state=\"X\""));
        assert_eq!(text.matches("# TYPE oxiray_workers gauge").count(), 1);
        assert_eq!(text.matches("# TYPE oxiray_spilled_bytes_total counter").count(), 1);
    }
}
