//! What kinds of tasks need: one CPU, two, one of each node in turn, one of a zone.

use oxiray_wire::control::{Amount, LabelSelector, Shape, Strategy, UNIT};

pub(crate) fn cpus(count: u64) -> Vec<Amount> {
    vec![Amount { name: "CPU".into(), amount: count * UNIT }]
}

/// CPUs that a kind of task needs.
pub(crate) const fn cpus_of_kind(kind: usize) -> u64 {
    if kind == 1 { 2 } else { 1 }
}

/// What a kind of task needs.
pub(crate) fn shape_of_kind(kind: usize) -> Shape {
    let strategy = match kind {
        2 => Some(Strategy { spread: true, ..Strategy::default() }),
        3 => {
            let values = vec!["zone-1".to_owned()];
            let zone = LabelSelector { key: "zone".into(), test: 0, values };
            Some(Strategy { labels: vec![zone], ..Strategy::default() })
        }
        _ => None,
    };
    Shape { resources: cpus(cpus_of_kind(kind)), strategy, ..Shape::default() }
}
