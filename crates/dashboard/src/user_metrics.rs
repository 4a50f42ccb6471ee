//! What programs count with `util.metrics`, in Prometheus' text format, by Ray's names.
//!
//! A sample is told for each process, by the labels `WorkerId` and `NodeId` beside the program's
//! own tags: a counter of a process that has ended stays, so that their sum never shrinks; a gauge
//! of it goes.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::metrics::show_labels;

/// As Ray's users know their metrics.
const PREFIX: &str = "ray_";

/// The lines of one metric.
#[derive(Default)]
struct Metric {
    kind: String,
    about: String,
    lines: String,
}

/// All of it; `alive` has the ids of the processes that are.
pub(crate) fn text(processes: &[Value], alive: &HashSet<&str>) -> String {
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    for process in processes {
        for row in process["metrics"].as_array().into_iter().flatten() {
            add(&mut metrics, process, row, alive);
        }
    }
    let mut text = String::new();
    for (name, Metric { kind, about, lines }) in metrics {
        let about = about.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = write!(text, "# HELP {name} {about}\n# TYPE {name} {kind}\n{lines}");
    }
    text
}

fn add(
    metrics: &mut BTreeMap<String, Metric>,
    process: &Value,
    row: &Value,
    alive: &HashSet<&str>,
) {
    let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, given) = (of(&row["kind"]), of(&row["name"]));
    let worker = of(&process["worker_id"]);
    if !is_name(&given) || (kind == "gauge" && !alive.contains(worker.as_str())) {
        return;
    }
    let name = match kind.as_str() {
        "counter" => format!("{PREFIX}{given}_total"),
        "gauge" | "histogram" => format!("{PREFIX}{given}"),
        _ => return,
    };
    let metric = metrics.entry(name.clone()).or_default();
    if metric.kind.is_empty() {
        (metric.kind, metric.about) = (kind, of(&row["description"]));
    } else if metric.kind != kind {
        return; // Two programs mean different things by one name: the first is told.
    }
    let keys: Vec<String> = row["tags"].as_array().into_iter().flatten().map(of).collect();
    for value in row["values"].as_array().into_iter().flatten() {
        let tags = value[0].as_array().into_iter().flatten().map(of);
        let mut labels: Vec<(String, String)> = keys.iter().cloned().zip(tags).collect();
        labels.push(("NodeId".into(), of(&process["node_id"])));
        labels.push(("WorkerId".into(), worker.clone()));
        match metric.kind.as_str() {
            "histogram" => buckets(&mut metric.lines, &name, &labels, row, &value[1]),
            _ => sample(&mut metric.lines, &name, &labels, &value[1]),
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn sample(lines: &mut String, name: &str, labels: &[(String, String)], value: &Value) {
    if let Some(value) = value.as_f64() {
        let labels: Vec<(&str, &str)> =
            labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let _ = writeln!(lines, "{name}{} {value}", show_labels(&labels));
    }
}

/// A histogram's value: the sum, and how many fell between each two boundaries.
fn buckets(
    lines: &mut String,
    name: &str,
    labels: &[(String, String)],
    row: &Value,
    value: &Value,
) {
    let bounds = row["boundaries"].as_array().into_iter().flatten().map(Value::to_string);
    let counts = value[1].as_array().into_iter().flatten().filter_map(Value::as_u64);
    let mut total = 0;
    for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(counts) {
        total += count;
        let mut labels = labels.to_vec();
        labels.push(("le".into(), bound));
        sample(lines, &format!("{name}_bucket"), &labels, &total.into());
    }
    sample(lines, &format!("{name}_sum"), labels, &value[0]);
    sample(lines, &format!("{name}_count"), labels, &total.into());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn process(id: &str, row: Value) -> Value {
        json!({"worker_id": id, "node_id": "n", "metrics": [row]})
    }

    #[test]
    fn a_gauge_goes_with_its_process_and_a_counter_stays() {
        let gauge = json!({"name": "depth", "kind": "gauge", "description": "How deep.",
            "tags": ["of"], "values": [[["a\"b"], 2.5]]});
        let counter = json!({"name": "seen", "kind": "counter", "description": "",
            "tags": [], "values": [[[], 3.0]]});
        let alive = HashSet::from(["w1"]);
        let all = [
            process("w1", gauge.clone()),
            process("w2", gauge),
            process("w1", counter.clone()),
            process("w2", counter),
        ];
        let text = text(&all, &alive);
        let told = "ray_depth{of=\"a\\\"b\",NodeId=\"n\",WorkerId=\"w1\"} 2.5\n";
        assert!(text.contains(told), "{text}");
        assert_eq!(text.matches("ray_depth{").count(), 1);
        assert_eq!(text.matches("ray_seen_total{").count(), 2);
        assert_eq!(text.matches("# TYPE ray_seen_total counter").count(), 1);
    }

    #[test]
    fn buckets_add_up() {
        let row = json!({"name": "t", "kind": "histogram", "tags": [], "boundaries": [1.0, 2.5],
            "values": [[[], [9.0, [1, 2, 1]]]]});
        let text = text(&[process("w", row)], &HashSet::new());
        for line in [
            r#"ray_t_bucket{NodeId="n",WorkerId="w",le="1.0"} 1"#,
            r#"ray_t_bucket{NodeId="n",WorkerId="w",le="2.5"} 3"#,
            r#"ray_t_bucket{NodeId="n",WorkerId="w",le="+Inf"} 4"#,
            r#"ray_t_sum{NodeId="n",WorkerId="w"} 9"#,
            r#"ray_t_count{NodeId="n",WorkerId="w"} 4"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn what_is_no_metric_is_left_out() {
        let rows = [json!(7), json!({"name": "a b", "kind": "gauge"}), json!({"name": "x"})];
        let all: Vec<Value> = rows.into_iter().map(|row| process("w", row)).collect();
        assert_eq!(text(&all, &HashSet::from(["w"])), "");
    }
}
