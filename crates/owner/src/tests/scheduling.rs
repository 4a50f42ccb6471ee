//! Histories of tasks and leases that once went wrong.

use oxiray_wire::frame::Outcome;

use super::user::Order;
use super::work::Ending;
use super::world::{DRIVER, World};
use crate::object::Content;

fn leases(world: &World) -> usize {
    world.net.node.leases.len()
}

/// Every task of a chain failed inside the one before, until the stack was full.
#[test]
fn a_failure_runs_down_a_long_chain() {
    let mut world = World::new(1);
    let worker = world.start(DRIVER, &Order { returns: 1, ..Order::default() });
    world.with(DRIVER, |driver, out| {
        for _ in 0..100_000 {
            let last = driver.refs.len() - 1;
            driver.chain(last, 0, out);
        }
        while driver.refs.len() > 1 {
            let middle = driver.refs.swap_remove(0);
            driver.owner.drop_ref(middle, out);
        }
    });
    world.answer(worker, &Ending { outcome: Outcome::Raised, ..Ending::done() });
    world.end();
}

/// A lease that was asked back at once, as others waited, went unused to whoever was next: a task of
/// no urgency ran before an urgent one. It does its one task first, and goes back then, not only when
/// it has been idle for long.
#[test]
fn a_reclaimed_lease_does_its_first_task_and_goes_back_at_once() {
    let mut world = World::new(1);
    (0..2).for_each(|_| world.submit(DRIVER, &Order::default()));
    assert!(world.net.node.grant(0));
    world.read_mail(DRIVER);
    assert_eq!(leases(&world), 1);
    world.net.node.reclaim(DRIVER);
    world.read_mail(DRIVER);
    assert_eq!(leases(&world), 1);
    let worker = *world.processes.keys().last().expect("a worker");
    world.drain(DRIVER, worker);
    assert_eq!(world.processes[&worker].queue.len(), 1, "the second was taken back or did not go");
    world.begin_next(worker);
    world.answer(worker, &Ending::done());
    world.drain(worker, DRIVER);
    assert_eq!(leases(&world), 0);
    world.end();
}

/// The same, if its last task is to be run again.
#[test]
fn a_reclaimed_lease_goes_back_when_its_task_is_to_be_retried() {
    let mut world = World::new(1);
    let worker = world.start(DRIVER, &Order { retries: 1, ..Order::default() });
    world.net.node.reclaim(DRIVER);
    world.read_mail(DRIVER);
    assert_eq!(leases(&world), 1);
    world.answer(worker, &Ending { outcome: Outcome::Retryable, ..Ending::done() });
    world.drain(worker, DRIVER);
    assert_eq!(leases(&world), 0);
    world.end();
}

/// A worker went on with tasks of its own shape while more urgent ones waited at the node.
#[test]
fn a_lease_goes_back_for_what_is_more_urgent() {
    let mut world = World::new(2);
    world.with(DRIVER, |driver, _| driver.owner.set_priority(1, 5));
    let worker = world.start(DRIVER, &Order::default());
    world.submit(DRIVER, &Order { function: 1, ..Order::default() });
    world.submit(DRIVER, &Order { function: 1, ..Order::default() });
    world.submit(DRIVER, &Order { shape: 1, ..Order::default() });
    world.answer(worker, &Ending::done());
    world.drain(worker, DRIVER);
    assert_eq!(leases(&world), 0);
    // The node has no use for it there, and grants it again: then it stays.
    assert!(world.net.node.grant(0));
    world.read_mail(DRIVER);
    let worker = world.net.node.leases.values().next().expect("granted").1;
    world.drain(DRIVER, worker);
    world.answer(worker, &Ending::done());
    world.drain(worker, DRIVER);
    assert_eq!(leases(&world), 1);
    world.end();
}

/// Short tasks were pushed behind a long one again as soon as they had been taken back.
#[test]
fn nothing_goes_back_behind_a_task_that_turned_out_long() {
    let mut world = World::new(1);
    for function in [0, 1] {
        world.submit(DRIVER, &Order { function, ..Order::default() });
        world.run_all();
    }
    // Both are thought to be short; the first one is not this time.
    let worker = world.start(DRIVER, &Order::default());
    world.submit(DRIVER, &Order { function: 1, ..Order::default() });
    world.drain(DRIVER, worker);
    assert_eq!(world.processes[&worker].queue.len(), 1, "pushed behind it");
    world.tick(10_000_000);
    assert!(world.net.claims.is_empty(), "taken back, and not pushed again");
    assert!(world.net.node.demand[&(DRIVER, 0)].0 > world.net.node.demand[&(DRIVER, 0)].1);
    world.answer(worker, &Ending::done());
    world.end();
}

/// A task that raises after it has made some of its values: those are there.
#[test]
fn what_was_made_before_an_error_is_kept() {
    for made in 0..=3 {
        let mut world = World::new(1);
        let worker = world.start(DRIVER, &Order { returns: 3, ..Order::default() });
        let ending = Ending { outcome: Outcome::Raised, stored: true, made, ..Ending::done() };
        world.answer(worker, &ending);
        world.drain(worker, DRIVER);
        let driver = &world.processes[&DRIVER];
        let contents = driver.refs.iter().map(|key| driver.owner.content(*key));
        let failed: Vec<bool> =
            contents.map(|content| matches!(content, Some(Content::Failed(_)))).collect();
        let expected: Vec<bool> = (0..3).map(|index| index >= made).collect();
        assert_eq!(failed, expected);
        world.end();
    }
}
