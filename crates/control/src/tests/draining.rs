//! Members that are to leave in an orderly way (D-1 to D-4).

use oxiray_ids::ProcessId;
use oxiray_wire::cluster::{Drain, Introduce, ReturnActor, from_control, to_control};
use oxiray_wire::control::{ActorPhase, CreateActor, Text, to_node};

use super::bench::{Bench, actor, creation, join, on_node, process};
use super::world::Asked;
use crate::{Event, PeerId};

fn drain(bench: &mut Bench, node: &str, within_ms: u64) -> Asked {
    let wanted = Drain { node: node.into(), reason: "spot".into(), within_ms, info: None };
    bench.say(999, to_control::Body::Drain(wanted))
}

fn leave(bench: &mut Bench, node: u64) -> Asked {
    bench.say(node, to_control::Body::Leave(Text { text: "it was drained".into() }))
}

fn of(counter: u32) -> oxiray_ids::ActorId {
    actor(process(1, 5), counter)
}

/// At the second node, if that is possible.
fn at_second(create: CreateActor) -> CreateActor {
    let mut placement = on_node(2).expect("a shape");
    placement.strategy.as_mut().expect("has one").soft = true;
    CreateActor { placement: Some(placement), ..create }
}

/// D-1.
#[test]
fn nothing_is_placed_at_a_node_that_drains_and_all_hear_of_it() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    let asked = drain(&mut bench, "10.0.0.1", 5_000);
    for told in [1, 2, 999] {
        let [from_control::Body::Drains(said), ..] = &asked.to(told)[..] else { panic!("{told}") };
        let info = said.info.as_ref().expect("who it is");
        assert_eq!((info.number, &info.draining[..], said.within_ms), (1, "spot", 5_000));
    }
    for counter in 1..=20 {
        assert_eq!(bench.create(creation(of(counter), 0)).made_at(), Some(2));
    }
}

/// D-2.
#[test]
fn the_last_that_takes_work_does_not_drain() {
    let mut bench = Bench::new();
    bench.join(1);
    let asked = drain(&mut bench, &"01".repeat(28), 0);
    assert!(asked.refusal(999).contains("it is the last node that takes work"));
    bench.join(2);
    drain(&mut bench, "0101", 0);
    assert!(drain(&mut bench, "0202", 0).refusal(999).contains("it is the last node"));
    assert!(drain(&mut bench, "beef", 0).refusal(999).contains("no node's id begins with beef"));
    assert!(drain(&mut bench, " ", 0).refusal(999).contains("say which node"));
}

/// D-1, over a restart of the control service; the node hears again what it may have missed.
#[test]
fn a_node_that_comes_back_still_drains() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    drain(&mut bench, "0202", 60_000);
    bench.restart();
    bench.join(1);
    let mut back = join(2);
    back.node.as_mut().expect("about it").number = 2;
    back.cluster = vec![3; 16];
    let asked = bench.say(12, to_control::Body::Join(back));
    let drains = |body: &&&from_control::Body| matches!(body, from_control::Body::Drains(_));
    assert_eq!(asked.to(12).iter().filter(drains).count(), 1);
}

/// D-3.
#[test]
fn a_restart_for_a_drain_is_not_counted() {
    for drained in [true, false] {
        let mut bench = Bench::new();
        bench.join(1);
        bench.join(2);
        let create = at_second(creation(of(1), 1));
        assert_eq!(bench.create(create).made_at(), Some(2));
        bench.news(2, of(1), ActorPhase::Alive, 0);
        if drained {
            drain(&mut bench, "0202", 0);
            assert_eq!(leave(&mut bench, 2).made_at(), Some(1));
        } else {
            assert_eq!(bench.event(Event::Closed(PeerId(2))).made_at(), Some(1));
        }
        bench.join(3);
        bench.news(1, of(1), ActorPhase::Alive, 1);
        // Its creator goes with node 1, too: the sentence says which of the two is the reason.
        leave(&mut bench, 1);
        let state = bench.see();
        let reason = &state.actors[0].reason;
        assert_eq!(reason.contains("could not be started again"), drained, "{reason}");
    }
}

/// One that has not been started yet waits for another node, whatever `max_restarts` is.
#[test]
fn who_waited_there_waits_elsewhere() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    assert_eq!(bench.create(at_second(creation(of(1), 0))).made_at(), Some(2));
    drain(&mut bench, "0202", 0);
    assert_eq!(leave(&mut bench, 2).made_at(), Some(1));
}

fn give_back(bench: &mut Bench, node: u64, restarts: u64, watchers: &[ProcessId]) -> Asked {
    let watchers = watchers.iter().map(|id| Introduce { process: id.0, ..Introduce::default() });
    let returned = ReturnActor { actor: of(1).0.to_vec(), restarts, watchers: watchers.collect() };
    bench.say(node, to_control::Body::ReturnActor(returned))
}

fn is_taken(asked: &Asked, node: u64) -> bool {
    asked.to(node).iter().any(|body| matches!(body, from_control::Body::ActorTaken(_)))
}

/// D-4; what the node says again, because it did not hear that we know, changes nothing.
#[test]
fn who_waits_there_is_elsewhere_before_the_node_leaves() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    bench.join(3);
    bench.create(at_second(creation(of(1), 3)));
    bench.news(2, of(1), ActorPhase::Alive, 0);
    drain(&mut bench, "0202", 0);
    let watcher = process(3, 7);
    let asked = give_back(&mut bench, 2, 1, &[watcher]);
    assert!(is_taken(&asked, 2));
    let place = asked.made_at().expect("goes elsewhere");
    assert_ne!(place, 2);
    let passed = asked.passed_on(place);
    assert!(matches!(passed[0], (_, to_node::Body::CreateActor(_), 1)), "{passed:?}");
    assert!(matches!(passed[1], (who, to_node::Body::WatchActor(_), _) if who == watcher));
    let again = give_back(&mut bench, 2, 1, &[process(2, 4)]);
    assert!(is_taken(&again, 2) && again.made_at().is_none());
    assert!(matches!(again.passed_on(place)[..], [(who, _, _)] if who == process(2, 4)));
}

/// D-4: one that must end is not made again.
#[test]
fn who_waits_there_and_must_end_does() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    bench.create(at_second(creation(of(1), 3)));
    drain(&mut bench, "0202", 0);
    bench.kill(process(1, 5), of(1), true);
    let asked = give_back(&mut bench, 2, 0, &[process(1, 5)]);
    assert!(is_taken(&asked, 2) && asked.made_at().is_none());
    assert!(asked.states(process(1, 5)).iter().all(|state| state.phase() == ActorPhase::Dead));
    assert!(!asked.states(process(1, 5)).is_empty());
}

/// One that had yet to be made there cannot be elsewhere when whoever makes it is gone.
#[test]
fn who_waited_there_for_a_maker_that_is_gone_is_dead() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    bench.create(at_second(creation(of(1), 0)));
    drain(&mut bench, "0202", 0);
    bench.say(1, to_control::Body::ProcessGone(process(1, 5).0));
    assert_eq!(leave(&mut bench, 2).made_at(), None);
    assert_eq!(bench.see().actors[0].phase(), ActorPhase::Dead);
}
