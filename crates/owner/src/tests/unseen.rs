//! Errors that go with their last reference before anybody has looked at them.

use oxiray_wire::frame::Outcome;

use super::user::Order;
use super::work::Ending;
use super::world::{DRIVER, World};
use crate::object::Content;

fn raise(world: &mut World, worker: u64) {
    world.answer(worker, &Ending { outcome: Outcome::Raised, ..Ending::done() });
    world.drain(worker, DRIVER);
}

fn told(world: &World) -> usize {
    world.net.unhandled.len()
}

#[test]
fn an_error_is_told_when_its_last_reference_goes() {
    let mut world = World::new(1);
    let worker = world.start(DRIVER, &Order { returns: 1, ..Order::default() });
    raise(&mut world, worker);
    assert_eq!(told(&world), 0, "it can still be got");
    world.drop_ref(DRIVER, 0);
    assert_eq!(told(&world), 1);
    world.end();
}

#[test]
fn an_error_that_comes_after_the_last_reference_went_is_told_at_once() {
    for returns in [1, 3] {
        let mut world = World::new(1);
        let worker = world.start(DRIVER, &Order { returns, ..Order::default() });
        (0..returns).for_each(|_| world.drop_ref(DRIVER, 0));
        raise(&mut world, worker);
        assert_eq!(told(&world), 1, "once for its {returns} returns");
        world.end();
    }
}

#[test]
fn a_crash_is_told_too() {
    let mut world = World::new(1);
    let worker = world.start(DRIVER, &Order { returns: 1, ..Order::default() });
    world.drop_ref(DRIVER, 0);
    world.kill(worker);
    world.obey_node();
    world.read_mail(DRIVER);
    assert_eq!(told(&world), 1);
    world.end();
}

#[test]
fn who_has_seen_an_error_has_seen_it_in_all_that_failed_by_it() {
    for seen in [0, 1] {
        let mut world = World::new(1);
        let worker = world.start(DRIVER, &Order { returns: 1, ..Order::default() });
        world.with(DRIVER, |driver, out| driver.chain(0, 0, out));
        raise(&mut world, worker);
        world.with(DRIVER, |driver, _| {
            let Some(Content::Failed(failure)) = driver.owner.content(driver.refs[seen]) else {
                panic!("the task and the one that took its return have failed")
            };
            assert!(failure.see());
        });
        world.drop_ref(DRIVER, 0);
        world.drop_ref(DRIVER, 0);
        assert_eq!(told(&world), 0);
        world.end();
    }
}

#[test]
fn an_error_says_which_tasks_it_ran_through() {
    for links in [1, 40] {
        let mut world = World::new(1);
        let worker = world.start(DRIVER, &Order { returns: 1, ..Order::default() });
        world.with(DRIVER, |driver, out| (0..links).for_each(|place| driver.chain(place, 0, out)));
        raise(&mut world, worker);
        world.with(DRIVER, |driver, _| {
            let message = |place: usize| match driver.owner.content(driver.refs[place]) {
                Some(Content::Failed(failure)) => failure.message.clone(),
                _ => panic!("all of them failed"),
            };
            // The cause has a line of its own here.
            assert_eq!(message(0).split('\n').count(), 1);
            assert_eq!(message(1).split('\n').count(), 2);
            assert_eq!(message(links).split('\n').count(), (links + 1).min(16), "and no more");
            assert_eq!(message(links).split('\n').any(|name| name == "..."), links > 16);
        });
        (0..=links).for_each(|_| world.drop_ref(DRIVER, 0));
        assert_eq!(told(&world), 1);
        world.end();
    }
}

#[test]
fn an_error_that_ran_down_a_chain_is_told_once_at_its_end() {
    let mut world = World::new(1);
    let worker = world.start(DRIVER, &Order { returns: 1, ..Order::default() });
    world.with(DRIVER, |driver, out| (0..3).for_each(|place| driver.chain(place, 0, out)));
    raise(&mut world, worker);
    for left in (0..4).rev() {
        assert_eq!(told(&world), 0, "somebody may yet look at what is left");
        world.drop_ref(DRIVER, 0);
        assert_eq!(told(&world), usize::from(left == 0));
    }
    world.end();
}

#[test]
fn nothing_is_told_of_what_returned() {
    let mut world = World::new(1);
    let worker = world.start(DRIVER, &Order { returns: 1, ..Order::default() });
    world.answer(worker, &Ending::done());
    world.drop_ref(DRIVER, 0);
    world.drain(worker, DRIVER);
    assert_eq!(told(&world), 0);
    world.end();
}
