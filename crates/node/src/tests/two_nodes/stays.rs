//! What a process hears of an actor that goes from one node to another (C-10, C-11 of the control
//! service).

use oxiray_wire::cluster::{ForProcess, OfProcess};
use oxiray_wire::control::{Actor, ActorPhase, ActorState};

use super::*;

const ACTOR: [u8; 16] = [9; 16];

impl Nodes {
    /// What the driver of node A is told of the actor by another node, or by the control service.
    fn told_driver(&mut self, by: u32, phase: ActorPhase, (stay, restarts): (u32, u64)) {
        let actor = ACTOR.to_vec();
        let state =
            ActorState { actor, phase: phase.into(), stay, restarts, ..ActorState::default() };
        let message = Some(Body::ActorState(state).into());
        let said = ForProcess { process: DRIVER.0, message };
        match by {
            0 => self.hear(A, from_control::Body::ForProcess(said)),
            _ => self.event(A, Event::FromPeer(by, between_nodes::Body::ForProcess(said))),
        }
    }

    /// What of that it has heard since the last time.
    fn heard(&mut self) -> Vec<(u32, u64)> {
        self.take(A, |_, body| match body {
            Body::ActorState(state) => Some((state.stay, state.restarts)),
            _ => None,
        })
    }

    /// What node A has said of its watches since the last time.
    fn watches(&mut self) -> Vec<(u32, u64)> {
        let said = std::mem::take(&mut self.parts.get_mut(&A).expect("is there").asked.to_control);
        let watch = |body| match body {
            to_control::Body::OfProcess(OfProcess { message, stay, restarts, .. }) => {
                let body = message.and_then(|message| message.body);
                matches!(body, Some(to_node::Body::WatchActor(_))).then_some((stay, restarts))
            }
            _ => None,
        };
        said.into_iter().filter_map(watch).collect()
    }
}

#[test]
fn a_node_that_was_lost_is_not_heard_in_front_of_the_next() {
    let mut nodes = Nodes::new(&[1, 1, 1]);
    let actor = Actor { actor: ACTOR.to_vec(), ..Actor::default() };
    nodes.say(DRIVER, to_node::Body::WatchActor(actor));
    assert_eq!(nodes.watches(), [(0, 0)], "it has heard nothing yet");
    nodes.told_driver(B, ActorPhase::Restarting, (0, 1));
    nodes.told_driver(B, ActorPhase::Restarting, (0, 2));
    assert_eq!(nodes.heard(), [(0, 1), (0, 2)]);
    nodes.lose(B);
    assert_eq!(nodes.watches(), [(0, 2)], "what the control service may not have heard");
    // It had not: to it that is the first restart.
    nodes.told_driver(0, ActorPhase::Restarting, (1, 1));
    nodes.told_driver(B, ActorPhase::Restarting, (0, 3));
    nodes.told_driver(C, ActorPhase::Pending, (1, 1));
    assert_eq!(nodes.heard(), [(1, 1), (1, 1)], "the last word of node B is old");
}
