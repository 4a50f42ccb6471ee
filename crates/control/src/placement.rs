//! Which node an actor goes to.

use oxiray_scheduler::{Choice, NodeNumber, Request, Strategy, Wanted, choose, explain};
use oxiray_wire::control::Shape;

use crate::control::Control;
use crate::record::ActorRecord;

/// What was found for an actor.
pub(crate) enum Placement {
    /// This node, from whose room it was taken.
    At(u32),
    /// Nothing that could ever take it is there yet, for this reason.
    NotYet(String),
    /// It must fail, for this reason.
    Nowhere(String),
    /// It must fail: its placement group is gone.
    GroupRemoved,
}

impl Control {
    /// Chooses a node as the actor's strategy says, its creator's being the nearest.
    pub(crate) fn find_node(&mut self, record: &ActorRecord) -> Placement {
        let empty = Shape::default();
        let placement = record.create.as_ref().and_then(|create| create.placement.as_ref());
        let shape = placement.unwrap_or(&empty);
        if let Some(place) = shape.place() {
            return self.find_in_group(place, record);
        }
        let mut wanted = Wanted::of(shape);
        if wanted.strategy == Strategy::Default && !needs_anything(shape) {
            // Nothing of it shows in what is free: packing would put all on one node.
            wanted.strategy = Strategy::Spread;
        }
        let request = Request {
            shape,
            strategy: &wanted.strategy,
            selectors: &wanted.selectors,
            fallbacks: &wanted.fallbacks,
            local: NodeNumber(record.creator().node()),
            prefer: (shape.near != 0).then_some(NodeNumber(shape.near)),
            turn: self.placements,
        };
        match choose(&self.room, &request) {
            Choice::Now(node) => {
                self.room.take(node, shape);
                self.placements += 1;
                Placement::At(node.0)
            }
            Choice::Queue(node) => {
                self.room.add_waiting(node);
                self.placements += 1;
                Placement::At(node.0)
            }
            Choice::Infeasible => Placement::NotYet(explain(&self.room, &request)),
            // The one it wants may be about to come back.
            Choice::Unschedulable(why) if self.is_incomplete() => Placement::NotYet(why),
            Choice::Unschedulable(why) => {
                Placement::Nowhere(format!("its node affinity cannot be met: {why}"))
            }
        }
    }
}

fn needs_anything(shape: &Shape) -> bool {
    shape.resources.iter().any(|need| need.amount > 0)
}
