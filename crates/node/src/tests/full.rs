//! Nodes that can have no more workers.

use oxiray_wire::control::ProcessKind;
use oxiray_wire::control::from_node::Body;

use crate::event::Event;

use super::bed::{Bed, DRIVER, MILLISECOND, SECOND, cpus, shape};

/// Takes every place but `left`; those are workers that run nothing and never will.
fn fill(bed: &mut Bed, left: usize) {
    while bed.node.bells.len() + left < bed.node.setup.max_processes {
        bed.admit(ProcessKind::Worker).unwrap();
    }
}

#[test]
fn w1_what_lacks_a_worker_for_good_fails_with_the_reason() {
    let mut bed = Bed::new(2, 0);
    bed.node.setup.limited_by = " with 256 open files (ulimit -n)".into();
    fill(&mut bed, 0);
    bed.create_actor(DRIVER, 1, shape(&[]), shape(&[]));
    bed.demand(DRIVER, 1, cpus(1), 1);
    bed.tick_after(900 * MILLISECOND);
    assert!(bed.take(|_, body| matches!(body, Body::Unschedulable(_)).then_some(())).is_empty());
    bed.tick_after(200 * MILLISECOND);
    let failed = bed.take(|_, body| match body {
        Body::Unschedulable(failed) => Some(failed.reason.clone()),
        _ => None,
    });
    assert!(failed[0].contains("256 open files (ulimit -n)"), "{failed:?}");
    assert!(bed.node.actors.is_empty(), "the actor failed, too");
    bed.tick_after(MILLISECOND);
    assert_eq!(bed.node.next_without_worker(), None, "nobody waits any more");
}

#[test]
fn w1_nothing_fails_while_a_lease_may_come_free() {
    let mut bed = Bed::ready(2, 1);
    bed.demand(DRIVER, 1, cpus(1), 1);
    assert_eq!(bed.grants().len(), 1);
    fill(&mut bed, 0);
    bed.create_actor(DRIVER, 1, shape(&[]), shape(&[]));
    bed.tick_after(5 * SECOND);
    assert_eq!(bed.node.actors.len(), 1);
}

#[test]
fn w1_starts_that_fail_again_and_again_are_given_up() {
    let mut bed = Bed::new(2, 0);
    bed.demand(DRIVER, 1, cpus(1), 2);
    for _ in 0..7 {
        assert_eq!(bed.starting, 2);
        bed.starts_fail();
        bed.tick_after(10 * SECOND);
    }
    // One after the other.
    for _ in 0..std::mem::take(&mut bed.starting) {
        bed.now += MILLISECOND;
        bed.event(Event::StartFailed { environment: 0, reason: "no reason".into() });
    }
    bed.tick_after(MILLISECOND);
    bed.tick_after(SECOND);
    let failed = bed.take(|_, body| matches!(body, Body::Unschedulable(_)).then_some(()));
    assert_eq!(failed.len(), 1);
    // Whoever comes later waits for the next start: it may be another time.
    bed.demand(DRIVER, 2, cpus(1), 1);
    bed.tick_after(1_500 * MILLISECOND);
    assert!(bed.take(|_, body| matches!(body, Body::Unschedulable(_)).then_some(())).is_empty());
    bed.tick_after(10 * SECOND);
    bed.workers_arrive();
    assert_eq!(bed.grants().len(), 1);
}
