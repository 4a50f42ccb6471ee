//! Where actors live, and who hears of it.

use oxiray_wire::cluster::{Join, KEPT_ACTORS, Kv, KvVerb, to_control};
use oxiray_wire::control::{ActorPhase, NamedActor, to_node};
use oxiray_wire::frame::FailureCode;

use super::bench::{Bench, actor, creation, join, needs, on_node, process};
use crate::{Event, PeerId};

#[test]
fn an_actor_is_made_near_its_creator_and_watched_there() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    let (creator, id) = (process(2, 1), actor(process(2, 1), 1));
    let mut create = creation(id, 0);
    create.placement = needs("CPU", 1);
    let asked = bench.create(create);
    let [(of, to_node::Body::CreateActor(made), 0)] = asked.passed_on(2)[..] else { panic!() };
    assert_eq!((of, &made.class_name[..]), (creator, "Counter"));
    let asked = bench.watch(process(1, 1), id);
    let [(watcher, to_node::Body::WatchActor(_), 0)] = asked.passed_on(2)[..] else { panic!() };
    assert_eq!(watcher, process(1, 1));
}

#[test]
fn actors_that_need_nothing_go_round() {
    let mut bench = Bench::new();
    (1..=4).for_each(|peer| _ = bench.join(peer));
    let mut per_node = [0; 5];
    for counter in 0..40 {
        let asked = bench.create(creation(actor(process(1, 1), counter), 0));
        per_node[asked.made_at().expect("placed") as usize] += 1;
    }
    assert_eq!(per_node, [0, 10, 10, 10, 10]);
}

#[test]
fn what_no_node_can_take_waits_for_one_that_can() {
    let mut bench = Bench::new();
    bench.join(1);
    let id = actor(process(1, 1), 1);
    let mut create = creation(id, 0);
    create.placement = needs("GPU", 1);
    assert_eq!(bench.create(create).made_at(), None);
    assert!(bench.watch(process(1, 2), id).sent.is_empty());
    let shown = &bench.see().actors[0];
    assert!(shown.reason.contains("GPU"), "{}", shown.reason);
    assert_eq!((shown.node, shown.phase()), (0, ActorPhase::Pending));
    let mut with_gpu = join(2);
    with_gpu.node.as_mut().unwrap().total.extend(needs("GPU", 1).unwrap().resources);
    with_gpu.node.as_mut().unwrap().available.clear();
    let asked = bench.say(2, to_control::Body::Join(with_gpu));
    let passed = asked.passed_on(2);
    assert!(matches!(passed[0].1, to_node::Body::CreateActor(_)));
    assert!(matches!(passed[1], (of, to_node::Body::WatchActor(_), _) if of == process(1, 2)));
}

#[test]
fn hard_affinity_to_a_node_that_is_gone_is_death() {
    let mut bench = Bench::new();
    bench.join(1);
    let id = actor(process(1, 1), 1);
    bench.watch(process(1, 2), id);
    let mut create = creation(id, 0);
    create.placement = on_node(9);
    let asked = bench.create(create);
    for who in [process(1, 1), process(1, 2)] {
        let [state] = asked.states(who)[..] else { panic!() };
        assert_eq!(state.phase(), ActorPhase::Dead);
        assert!(state.reason.starts_with("its node affinity cannot be met"));
        assert_eq!(state.failure_code(), Some(FailureCode::ActorUnschedulable));
        assert_eq!(state.class_name, "Counter");
    }
}

#[test]
fn an_actor_of_a_node_that_left_starts_again_elsewhere() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    let (creator, id) = (process(1, 1), actor(process(1, 1), 1));
    let mut create = creation(id, 1);
    create.placement = on_node(2);
    create.placement.as_mut().unwrap().strategy.as_mut().unwrap().soft = true;
    assert_eq!(bench.create(create).made_at(), Some(2));
    bench.news(2, id, ActorPhase::Alive, 0);
    let asked = bench.event(Event::Closed(PeerId(2)));
    assert!(matches!(asked.passed_on(1)[..], [(_, to_node::Body::CreateActor(_), 1)]));
    // Whose watch was at the old node asks again, hears of the restart, and watches the new one.
    let asked = bench.watch(creator, id);
    let [state] = asked.states(creator)[..] else { panic!() };
    assert_eq!((state.phase(), state.restarts), (ActorPhase::Restarting, 1));
    let reason = "its node 020202020202 () left the cluster: its node service ended";
    assert!(state.reason.starts_with(reason), "{}", state.reason);
    assert!(matches!(asked.passed_on(1)[..], [(_, to_node::Body::WatchActor(_), _)]));
    // What the old node said no longer counts, nor what is of an earlier life.
    bench.news(1, id, ActorPhase::Alive, 0);
    assert_eq!(bench.see().actors[0].phase(), ActorPhase::Restarting);
    bench.news(1, id, ActorPhase::Alive, 1);
    assert_eq!(bench.see().actors[0].phase(), ActorPhase::Alive);
}

#[test]
fn without_restarts_it_is_dead() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    let (creator, id) = (process(1, 1), actor(process(1, 1), 1));
    let mut create = creation(id, 0);
    create.placement = on_node(2);
    bench.create(create);
    let asked = bench.event(Event::Closed(PeerId(2)));
    let reason =
        "its node 020202020202 () left the cluster: its node service ended or its connection broke";
    assert_eq!(asked.states(creator)[0].reason, reason);
    let asked = bench.watch(process(1, 7), id);
    assert_eq!(asked.states(process(1, 7))[0].reason, reason);
}

#[test]
fn a_detached_actor_without_its_creator_cannot_start_again() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    let id = actor(process(1, 1), 1);
    let mut create = creation(id, -1);
    create.detached = true;
    create.placement = on_node(2);
    bench.create(create);
    bench.news(2, id, ActorPhase::Alive, 0);
    bench.say(1, to_control::Body::ProcessGone(process(1, 1).0));
    assert_eq!(bench.see().actors[0].phase(), ActorPhase::Alive);
    bench.event(Event::Closed(PeerId(2)));
    let asked = bench.watch(process(1, 2), id);
    let reason = &asked.states(process(1, 2))[0].reason;
    assert!(reason.contains("the process that made it, which alone had its class"), "{reason}");
}

#[test]
fn one_killed_before_it_was_made_is_dead_on_arrival() {
    let mut bench = Bench::new();
    bench.join(1);
    let (creator, id) = (process(1, 1), actor(process(1, 1), 1));
    bench.watch(process(1, 2), id);
    let asked = bench.kill(process(1, 2), id, true);
    for who in [creator, process(1, 2)] {
        assert_eq!(asked.states(who)[0].reason, "it was killed by ray.kill");
    }
    let asked = bench.create(creation(id, 0));
    assert_eq!(asked.made_at(), None);
    assert_eq!(asked.states(creator)[0].phase(), ActorPhase::Dead);
}

#[test]
fn one_killed_for_good_stays_dead_when_its_node_dies_first() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    let id = actor(process(1, 1), 1);
    let mut create = creation(id, -1);
    create.placement = on_node(2);
    bench.create(create);
    let asked = bench.kill(process(1, 2), id, true);
    assert!(matches!(asked.passed_on(2)[..], [(_, to_node::Body::KillActor(_), _)]));
    let asked = bench.event(Event::Closed(PeerId(2)));
    assert_eq!(asked.states(process(1, 1))[0].reason, "it was killed by ray.kill");
}

#[test]
fn what_is_expected_dies_with_its_creator() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    let id = actor(process(2, 1), 1);
    assert!(bench.watch(process(1, 1), id).sent.is_empty());
    let asked = bench.say(2, to_control::Body::ProcessGone(process(2, 1).0));
    assert_eq!(asked.states(process(1, 1))[0].reason, "its owner died");
    // Who asks later hears it at once.
    let asked = bench.watch(process(1, 1), actor(process(2, 1), 2));
    assert_eq!(asked.states(process(1, 1))[0].reason, "its owner died");
    let asked = bench.watch(process(1, 1), actor(process(77, 1), 2));
    assert_eq!(asked.states(process(1, 1))[0].reason, "unknown actor");
}

/// A node that is back after a restart of control, and what it has.
fn back(bench: &mut Bench, peer: u64, number: u32, actors: Vec<Vec<u8>>) -> super::world::Asked {
    let mut again = Join { actors, cluster: vec![3; 16], ..join(u64::from(number)) };
    again.node.as_mut().unwrap().number = number;
    bench.say(peer, to_control::Body::Join(again))
}

#[test]
fn after_a_restart_what_was_not_made_is_made() {
    let mut bench = Bench::new();
    bench.join(1);
    let id = actor(process(1, 1), 1);
    bench.create(creation(id, 0));
    bench.restart();
    let asked = back(&mut bench, 1, 1, vec![]);
    assert!(matches!(asked.passed_on(1)[..], [(_, to_node::Body::CreateActor(_), 0)]));
}

#[test]
fn after_a_restart_what_lives_lives_on_and_what_is_lost_starts_again() {
    let mut bench = Bench::new();
    bench.join(1);
    let (kept, lost) = (actor(process(1, 1), 1), actor(process(1, 1), 2));
    for id in [kept, lost] {
        bench.create(creation(id, 1));
        bench.news(1, id, ActorPhase::Alive, 0);
    }
    bench.restart();
    let asked = back(&mut bench, 1, 1, vec![kept.0.to_vec()]);
    let [(_, to_node::Body::CreateActor(made), 1)] = asked.passed_on(1)[..] else { panic!() };
    assert_eq!(made.actor, lost.0);
    let shown = bench.see().actors;
    assert_eq!(shown[0].phase(), ActorPhase::Alive);
    assert_eq!(shown[1].phase(), ActorPhase::Restarting);
}

#[test]
fn who_ended_while_control_was_away_is_gone() {
    let mut bench = Bench::new();
    bench.join(1);
    let id = actor(process(1, 5), 1);
    let mut create = creation(id, 0);
    create.placement = needs("GPU", 1);
    bench.create(create);
    bench.restart();
    let mut again = Join { cluster: vec![3; 16], ..join(1) };
    again.node.as_mut().unwrap().number = 1;
    again.processes = vec![process(1, 0).0, process(1, 2).0];
    bench.say(1, to_control::Body::Join(again));
    assert_eq!(bench.see().actors[0].reason, "its owner died");
    let asked = bench.watch(process(1, 2), actor(process(1, 5), 2));
    assert_eq!(asked.states(process(1, 2))[0].reason, "its owner died");
}

#[test]
fn a_detached_actor_that_is_kept_may_wait_without_its_creator() {
    let mut bench = Bench::new();
    bench.join(1);
    let id = actor(process(1, 5), 1);
    let kept = Kv {
        verb: KvVerb::Put.into(),
        namespace: KEPT_ACTORS.into(),
        key: id.0.to_vec(),
        value: Some(b"class and arguments".to_vec()),
        ..Kv::default()
    };
    bench.say(1, to_control::Body::Kv(kept));
    let mut create = creation(id, 0);
    create.detached = true;
    create.placement = needs("GPU", 1);
    bench.create(create);
    bench.say(1, to_control::Body::ProcessGone(process(1, 5).0));
    assert_eq!(bench.see().actors[0].phase(), ActorPhase::Pending);
    bench.kill(process(1, 2), id, true);
    assert!(bench.control.kv.is_empty(), "what was kept for it goes with it");
}

#[test]
fn what_is_kept_in_parts_goes_with_its_actor_and_does_not_come_after_it() {
    let mut bench = Bench::new();
    bench.join(1);
    let [id, other] = [1, 2].map(|number| actor(process(1, 5), number));
    let part = |of: oxiray_ids::ActorId, part: &[u8]| {
        to_control::Body::Kv(Kv {
            verb: KvVerb::Put.into(),
            namespace: KEPT_ACTORS.into(),
            key: [&of.0[..], part].concat(),
            value: Some(vec![1; 64 << 10]),
            ..Kv::default()
        })
    };
    for id in [id, other] {
        bench.create(creation(id, 0));
        for key in [&[0, 0, 0, 0][..], &[0, 0, 0, 1], &[]] {
            bench.say(1, part(id, key));
        }
    }
    bench.news(1, id, ActorPhase::Dead, 0);
    assert_eq!(bench.control.kv.len(), 3, "the other's stay");
    bench.say(1, part(id, &[0, 0, 0, 2]));
    assert_eq!(bench.control.kv.len(), 3, "nobody would remove it");
    bench.restart();
    assert_eq!(bench.control.kv.len(), 3, "nor has the store any of it");
}

#[test]
fn names_last_as_long_as_their_bearers() {
    let mut bench = Bench::new();
    bench.join(1);
    let (creator, id) = (process(1, 1), actor(process(1, 1), 1));
    let name = |id: oxiray_ids::ActorId, request| NamedActor {
        request,
        name: "counter".into(),
        actor: id.0.to_vec(),
        ..NamedActor::default()
    };
    let bearer = |bench: &mut Bench| {
        bench.control.names.get(&(String::new(), "counter".into())).map(|bearer| bearer.actor)
    };
    bench.of(creator, to_node::Body::NameActor(name(id, 1)));
    bench.of(process(1, 2), to_node::Body::NameActor(name(actor(process(1, 2), 1), 2)));
    assert_eq!(bearer(&mut bench), Some(id), "C-4: who came first has it");
    bench.create(creation(id, 0));
    bench.restart();
    back(&mut bench, 1, 1, vec![id.0.to_vec()]);
    assert_eq!(bearer(&mut bench), Some(id));
    bench.news(1, id, ActorPhase::Dead, 0);
    assert_eq!(bearer(&mut bench), None);
    let unmade = actor(creator, 9);
    bench.of(creator, to_node::Body::NameActor(name(unmade, 3)));
    assert_eq!(bearer(&mut bench), Some(unmade));
    bench.say(1, to_control::Body::ProcessGone(creator.0));
    assert_eq!(bearer(&mut bench), None);
}

#[test]
fn what_is_kept_goes_when_nobody_will_ask_for_it() {
    let mut bench = Bench::new();
    bench.join(1);
    let keep = |id: oxiray_ids::ActorId| {
        to_control::Body::Kv(Kv {
            verb: KvVerb::Put.into(),
            namespace: KEPT_ACTORS.into(),
            key: id.0.to_vec(),
            value: Some(b"class and arguments".to_vec()),
            ..Kv::default()
        })
    };
    let [once, again, never] = [1, 2, 3].map(|number| actor(process(1, 5), number));
    for (id, restarts) in [(once, 0), (again, 1)] {
        bench.say(1, keep(id));
        let mut create = creation(id, restarts);
        (create.detached, create.kept) = (true, true);
        bench.create(create);
        bench.news(1, id, ActorPhase::Alive, 0);
    }
    assert_eq!(bench.control.kv.len(), 1, "one that is never made again needs nothing");
    bench.news(1, again, ActorPhase::Restarting, 1);
    assert_eq!(bench.control.kv.len(), 1, "it is being made from that");
    bench.news(1, again, ActorPhase::Alive, 1);
    assert!(bench.control.kv.is_empty(), "that was the last time");
    bench.say(1, keep(never));
    bench.say(1, to_control::Body::ProcessGone(process(1, 5).0));
    assert!(bench.control.kv.is_empty(), "its creator went before it asked for the actor");
}
