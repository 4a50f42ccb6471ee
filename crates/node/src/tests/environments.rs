//! Tests of runtime environments: whose workers serve what, and what follows when one cannot be made.

use oxiray_wire::control::from_node::Body;
use oxiray_wire::control::{ActorPhase, Lease, Shape, to_node, why_unmade};
use oxiray_wire::frame::FailureCode;

use super::bed::{Bed, DRIVER, SECOND, cpus};
use crate::event::Event;

fn in_environment(text: &str) -> Shape {
    Shape { environment: text.into(), ..cpus(1) }
}

#[test]
fn what_is_not_plain_waits_for_its_template_and_holds_nothing() {
    let mut bed = Bed::ready(1, 1);
    bed.demand(DRIVER, 1, in_environment("a"), 2);
    assert!(bed.grants().is_empty());
    assert_eq!(bed.templates, [1]);
    bed.demand(DRIVER, 2, cpus(1), 1);
    let [plain] = &bed.grants()[..] else { panic!("the CPU is free meanwhile") };
    bed.event(Event::Template(1, Ok(())));
    assert!(bed.starting_elsewise.is_empty(), "there is no CPU for it");
    bed.say(DRIVER, to_node::Body::ReturnLease(Lease { lease: plain.lease }));
    assert_eq!(bed.starting_elsewise, [1]);
    let worker = bed.other_worker_arrives().unwrap();
    let [grant] = &bed.grants()[..] else { panic!() };
    assert_eq!(grant.worker, worker, "E-1");
    assert_eq!(bed.templates, [1], "once");
}

#[test]
fn each_environment_has_workers_of_its_own() {
    let mut bed = Bed::ready(4, 1);
    bed.demand(DRIVER, 1, in_environment("a"), 1);
    bed.demand(DRIVER, 2, in_environment("b"), 1);
    assert_eq!(bed.templates, [1, 2]);
    bed.event(Event::Template(1, Ok(())));
    bed.event(Event::Template(2, Ok(())));
    assert_eq!(bed.starting_elsewise, [1, 2]);
    let (b, a) = (bed.other_worker_arrives().unwrap(), bed.other_worker_arrives().unwrap());
    let grants = bed.grants();
    assert_eq!(grants.iter().map(|grant| grant.worker).collect::<Vec<_>>(), [b, a]);
    for grant in grants {
        bed.say(DRIVER, to_node::Body::ReturnLease(Lease { lease: grant.lease }));
    }
    bed.create_actor(DRIVER, 1, in_environment("a"), cpus(0));
    assert_eq!(bed.actor_worker(1), a);
}

#[test]
fn one_that_cannot_be_made_fails_all_that_wait_and_may_be_tried_again() {
    let mut bed = Bed::ready(2, 1);
    bed.demand(DRIVER, 1, in_environment("a"), 3);
    bed.create_actor(DRIVER, 1, in_environment("a"), cpus(0));
    bed.event(Event::Template(1, Err("no such package".into())));
    let failed = bed.take(|_, body| match body {
        Body::Unschedulable(failed) => Some(failed.clone()),
        _ => None,
    });
    let [failed] = &failed[..] else { panic!() };
    assert_eq!((failed.shape_key, failed.code()), (1, FailureCode::Environment));
    assert_eq!(failed.reason, "no such package");
    let state = bed.states(DRIVER).pop().unwrap();
    assert_eq!(state.phase(), ActorPhase::Dead);
    let why = why_unmade(&state.creation_error);
    assert_eq!(why, Some((FailureCode::Environment, "no such package")));
    assert_eq!(bed.templates, [1], "nobody waits for it");
    bed.demand(DRIVER, 1, in_environment("a"), 1);
    assert_eq!(bed.templates, [1, 1]);
}

#[test]
fn a_template_whose_workers_never_come_is_given_up() {
    let mut bed = Bed::ready(1, 1);
    bed.demand(DRIVER, 1, in_environment("a"), 1);
    bed.event(Event::Template(1, Ok(())));
    for attempt in 0..3 {
        assert_eq!(bed.starting_elsewise.len(), 1, "attempt {attempt}");
        bed.starting_elsewise.clear();
        bed.event(Event::StartFailed { environment: 1, reason: "its hook raised".into() });
        bed.tick_after(SECOND);
    }
    let failed = bed.take(|_, body| matches!(body, Body::Unschedulable(_)).then_some(()));
    assert_eq!(failed.len(), 1);
    assert_eq!(bed.ended_templates, [1]);
    assert!(bed.starting_elsewise.is_empty());
}

#[test]
fn a_template_that_dies_is_made_again_and_one_without_workers_ends() {
    let mut bed = Bed::ready(1, 1);
    bed.demand(DRIVER, 1, in_environment("a"), 1);
    bed.event(Event::Template(1, Ok(())));
    bed.event(Event::StartFailed { environment: 1, reason: "it is gone".into() });
    bed.event(Event::Template(1, Err("it is gone".into())));
    assert_eq!(bed.templates, [1, 1]);
    bed.event(Event::Template(1, Ok(())));
    bed.tick_after(SECOND);
    let worker = bed.other_worker_arrives().unwrap();
    bed.tick_after(100 * SECOND);
    assert!(bed.ended_templates.is_empty(), "it has a worker");
    bed.end(worker, "exit code 0");
    bed.demand(DRIVER, 1, in_environment("a"), 1);
    bed.tick_after(59 * SECOND);
    assert!(bed.ended_templates.is_empty());
    bed.tick_after(2 * SECOND);
    assert_eq!(bed.ended_templates, [1]);
    assert!(bed.node.next_wakeup().is_none(), "and then there is peace");
}
