//! What a shape asks of nodes, from the wire's form to the policies'.

use oxiray_ids::{GroupId, NodeId};
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
    /// Asked for instead of those, in this order, where no node with them has room.
    pub fallbacks: Vec<Vec<Selector>>,
    /// The placement group that it is to be in, and the bundle of that; `None` of it: any.
    /// Then the rest says nothing.
    pub place: Option<(GroupId, Option<u32>)>,
}

impl Wanted {
    /// Reads it out of a shape.
    pub fn of(shape: &Shape) -> Self {
        let Some(asked) = &shape.strategy else {
            return Self::default();
        };
        if let Some(place) = shape.place() {
            return Self { place: Some(place), ..Self::default() };
        }
        let read = |labels: &[LabelSelector]| labels.iter().map(selector).collect::<Vec<_>>();
        let soft = read(&asked.soft_labels);
        let strategy = match NodeId::from_slice(&asked.node) {
            Some(node) => Strategy::Node(Affinity {
                node,
                soft: asked.soft,
                spill_on_unavailable: asked.spill_on_unavailable,
                fail_on_unavailable: asked.fail_on_unavailable,
            }),
            None if asked.spread => Strategy::Spread,
            None if !soft.is_empty() => Strategy::Labels { hard: Vec::new(), soft },
            None => Strategy::Default,
        };
        let fallbacks = asked.fallbacks.iter().map(|fallback| read(&fallback.all)).collect();
        Self { strategy, selectors: read(&asked.labels), fallbacks, place: None }
    }

    /// Whether any node will do, so that the nearest is best.
    pub fn is_any(&self) -> bool {
        self.strategy == Strategy::Default && self.selectors.is_empty() && self.place.is_none()
    }
}

pub(crate) fn selector(wire: &LabelSelector) -> Selector {
    let operator = match wire.test() {
        LabelTest::In => Operator::In(wire.values.clone()),
        LabelTest::NotIn => Operator::NotIn(wire.values.clone()),
        LabelTest::Exists => Operator::Exists,
        LabelTest::DoesNotExist => Operator::DoesNotExist,
    };
    Selector { key: wire.key.clone(), operator }
}
