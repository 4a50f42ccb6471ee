//! An actor's node may tell others what the control service never hears: what follows is newer.

use oxiray_ids::ActorId;
use oxiray_wire::cluster::{OfProcess, ReturnActor, from_control, to_control};
use oxiray_wire::control::{ActorPhase, incarnation};

use super::bench::{Bench, actor, creation, on_node, process};
use super::world::Asked;
use crate::{Event, PeerId};

/// More often than anybody heard of.
const OFTEN: u64 = 1000;

fn id() -> ActorId {
    actor(process(1, 1), 1)
}

/// An actor that lives at the second of two nodes, and may be at the other.
fn at_second(max_restarts: i64) -> Bench {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    let mut create = creation(id(), max_restarts);
    create.placement = on_node(2);
    create.placement.as_mut().unwrap().strategy.as_mut().unwrap().soft = true;
    assert_eq!(bench.create(create).made_at(), Some(2));
    bench.news(2, id(), ActorPhase::Alive, 0);
    bench
}

/// How the actor was sent to be made: its stay, and how often it was started before.
fn made(asked: &Asked) -> (u32, u64) {
    let peer = asked.made_at().expect("is made somewhere");
    let of_process = asked.to(peer).into_iter().find_map(|body| match body {
        from_control::Body::OfProcess(OfProcess { stay, restarts, .. }) => Some((*stay, *restarts)),
        _ => None,
    });
    of_process.expect("just seen")
}

/// C-10: the node started it again many times, told those who watch it, and was lost.
#[test]
fn the_next_stay_is_newer_than_all_that_a_lost_node_said() {
    let mut bench = at_second(-1);
    let (stay, restarts) = made(&bench.event(Event::Closed(PeerId(2))));
    assert!(incarnation(stay, restarts) > incarnation(0, OFTEN));
    let asked = bench.watch_after(process(1, 7), id(), (0, OFTEN));
    let [state] = asked.states(process(1, 7))[..] else { panic!() };
    assert_eq!(state.phase(), ActorPhase::Restarting);
    assert_eq!(state.incarnation(), incarnation(stay, restarts));
    assert_eq!(bench.see().actors[0].restarts, 1, "what came too late counts for nothing");
    bench.restart();
    assert_eq!(bench.control.actors[&id()].record.stay, stay, "it is kept");
}

/// C-10, of one that is not started again.
#[test]
fn a_death_is_newer_than_all_that_a_lost_node_said() {
    let mut bench = at_second(1);
    bench.news(2, id(), ActorPhase::Restarting, 1);
    bench.event(Event::Closed(PeerId(2)));
    let asked = bench.watch_after(process(1, 7), id(), (0, OFTEN));
    let [state] = asked.states(process(1, 7))[..] else { panic!() };
    assert_eq!(state.phase(), ActorPhase::Dead);
    assert!(state.incarnation() > incarnation(0, OFTEN));
    assert_eq!(state.restarts, 1);
}

/// C-10, of one that a node which drains gives back.
#[test]
fn who_is_given_back_begins_another_stay() {
    let mut bench = at_second(-1);
    let returned = ReturnActor { actor: id().0.to_vec(), restarts: 1, ..ReturnActor::default() };
    let asked = bench.say(2, to_control::Body::ReturnActor(returned));
    assert_eq!(made(&asked), (1, 1));
}

/// C-11: two restarts that only a watcher had heard of are two of the two that there may be.
#[test]
fn restarts_that_only_watchers_heard_of_count() {
    for (most, lives) in [(2, false), (3, true)] {
        let mut bench = at_second(most);
        bench.watch_after(process(1, 7), id(), (0, 2));
        // Others heard less, or of another stay.
        bench.watch_after(process(1, 8), id(), (0, 1));
        bench.watch_after(process(1, 9), id(), (7, 9));
        assert_eq!(bench.see().actors[0].restarts, 2);
        let asked = bench.event(Event::Closed(PeerId(2)));
        assert_eq!(asked.made_at().is_some(), lives);
        assert_eq!(bench.see().actors[0].restarts, if lives { 3 } else { 2 });
    }
}
