//! What a shape asks of nodes, from the wire's form to the policies'.

use oxiray_ids::NodeId;
use oxiray_wire::control::{LabelSelector, LabelTest, Shape};

use crate::labels::{Operator, Selector};
use crate::policy::{Affinity, Strategy};

/// How to choose a node for a shape.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Which strategy.
    pub strategy: Strategy,
    /// Labels that a node must have, whatever the strategy.
    pub selectors: Vec<Selector>,
}

impl Wanted {
    /// Reads it out of a shape.
    pub fn of(shape: &Shape) -> Self {
        let Some(asked) = &shape.strategy else {
            return Self::default();
        };
        let labels = || asked.labels.iter().map(selector).collect();
        let soft_labels: Vec<Selector> = asked.soft_labels.iter().map(selector).collect();
        let strategy = match NodeId::from_slice(&asked.node) {
            Some(node) => Strategy::Node(Affinity {
                node,
                soft: asked.soft,
                spill_on_unavailable: asked.spill_on_unavailable,
                fail_on_unavailable: asked.fail_on_unavailable,
            }),
            None if asked.spread => Strategy::Spread,
            None if !soft_labels.is_empty() => {
                return Self {
                    strategy: Strategy::Labels { hard: labels(), soft: soft_labels },
                    selectors: Vec::new(),
                };
            }
            None => Strategy::Default,
        };
        Self { strategy, selectors: labels() }
    }

    /// Whether any node will do, so that the nearest is best.
    pub fn is_any(&self) -> bool {
        self.strategy == Strategy::Default && self.selectors.is_empty()
    }
}

fn selector(wire: &LabelSelector) -> Selector {
    let operator = match wire.test() {
        LabelTest::In => Operator::In(wire.values.clone()),
        LabelTest::NotIn => Operator::NotIn(wire.values.clone()),
        LabelTest::Exists => Operator::Exists,
        LabelTest::DoesNotExist => Operator::DoesNotExist,
    };
    Selector { key: wire.key.clone(), operator }
}
