//! Histories of references that once went wrong. What must hold is checked at
//! every step and by `World::end`.

use oxiray_wire::frame::{FailureCode, Outcome};

use super::user::Order;
use super::work::Ending;
use super::world::{DRIVER, World};
use crate::object::Content;

fn with_nested(nested: &[usize]) -> Order {
    Order { nested: nested.to_vec(), ..Order::default() }
}

fn returning(returns: u32) -> Order {
    Order { returns, ..Order::default() }
}

fn ending(outcome: Outcome, contains: &[usize]) -> Ending {
    Ending { outcome, contains: contains.to_vec(), ..Ending::done() }
}

impl World {
    /// Submits a task and has a worker begin it: that worker.
    pub(super) fn start(&mut self, giver: u64, order: &Order) -> u64 {
        let idle = self.net.node.idle.clone();
        self.submit(giver, order);
        assert!(self.net.node.grant(0), "a worker is idle");
        self.read_mail(giver);
        let now = &self.net.node.idle;
        let worker = *idle.iter().find(|worker| !now.contains(worker)).expect("granted");
        self.drain(giver, worker);
        self.begin_next(worker);
        assert!(self.processes[&worker].running.is_some());
        worker
    }

    fn content_at(&self, process: u64, place: usize) -> Option<Content> {
        let process = &self.processes[&process];
        process.owner.content(process.at(place)?).cloned()
    }
}

/// The worker held the reference "twice" and so seemed to retain it; its
/// release went ahead of the answer that said so.
#[test]
fn a_reference_given_twice_is_not_retained_for_that() {
    let mut world = World::new(1);
    world.put(DRIVER, DRIVER, &[], false);
    let worker = world.start(DRIVER, &with_nested(&[0, 0]));
    world.answer(worker, &Ending::done());
    world.deliver_all();
    assert_eq!(world.processes[&worker].owner.counts(), (0, 0));
    world.end();
}

/// Settling the last inner reference freed its outer object and so itself.
#[test]
fn an_outer_object_goes_while_its_inner_one_settles() {
    let mut world = World::new(1);
    world.put(DRIVER, DRIVER, &[], false);
    world.put(DRIVER, DRIVER, &[0], false);
    let worker = world.start(DRIVER, &with_nested(&[1]));
    world.take_argument(worker, 0);
    world.want(worker, 0);
    world.drain(worker, DRIVER);
    world.drain(DRIVER, worker);
    world.drop_ref(worker, 0);
    world.answer(worker, &Ending::done());
    world.end();
}

/// The giver let go of an object while the worker was still registering what
/// it had read out of it.
#[test]
fn what_was_read_out_of_an_argument_is_protected_by_it() {
    let mut world = World::new(2);
    world.put(DRIVER, DRIVER, &[], false);
    world.put(DRIVER, DRIVER, &[0], false);
    let first = world.start(DRIVER, &with_nested(&[1]));
    world.drop_ref(DRIVER, 0);
    world.drop_ref(DRIVER, 0);
    world.take_argument(first, 0);
    let second = world.start(first, &with_nested(&[0]));
    world.drop_ref(first, 0);
    world.take_argument(second, 0);
    world.want(second, 0);
    world.drain(second, DRIVER);
    world.drain(DRIVER, second);
    world.read(second, 0, 0);
    world.drop_ref(second, 0);
    // The worker holds the inner one only. Its registration is late.
    world.answer(second, &Ending::done());
    world.drain(second, first);
    world.answer(first, &Ending::done());
    world.drain(first, DRIVER);
    world.end();
}

/// The exception of an attempt that is run again held references for ever.
#[test]
fn what_a_retried_attempt_handed_over_is_let_go() {
    let mut world = World::new(1);
    let worker = world.start(DRIVER, &Order { retries: 1, ..returning(1) });
    world.put(worker, worker, &[], false);
    world.answer(worker, &ending(Outcome::Retryable, &[0]));
    world.end();
}

/// A failure is for all returns, and so is what it contains; also for none.
#[test]
fn a_failure_with_references_inside_is_shared_by_all_returns() {
    for returns in 0..4 {
        let mut world = World::new(1);
        let worker = world.start(DRIVER, &returning(returns));
        world.put(worker, worker, &[], false);
        world.answer(worker, &ending(Outcome::Raised, &[0]));
        world.deliver_all();
        for place in 0..returns as usize {
            let driver = &world.processes[&DRIVER];
            assert_eq!(driver.owner.contained(driver.refs[place]).len(), 1);
        }
        world.end();
    }
}

/// A process asked a dead owner, whose death it had heard of before, and waited for ever.
#[test]
fn a_reference_whose_owner_is_dead_can_still_be_passed_on() {
    let mut world = World::new(2);
    let owner = world.start(DRIVER, &returning(1));
    world.put(owner, owner, &[], false);
    world.answer(owner, &ending(Outcome::Done, &[0]));
    world.deliver_all();
    world.read(DRIVER, 0, 0);
    world.kill(owner);
    world.deliver_all();
    let worker = world.start(DRIVER, &Order { shape: 1, ..with_nested(&[1]) });
    world.take_argument(worker, 0);
    world.want(worker, 0);
    let Some(Content::Failed(failure)) = world.content_at(worker, 0) else {
        panic!("it is known to be gone")
    };
    assert_eq!(failure.code, FailureCode::OwnerDied);
    world.answer(worker, &Ending::done());
    world.end();
}

/// Nobody would ever say that it has registered what was returned to it.
#[test]
fn what_is_returned_to_the_dead_is_let_go() {
    let mut world = World::new(2);
    let first = world.start(DRIVER, &Order::default());
    let second = world.start(first, &returning(1));
    world.kill(first);
    world.deliver_all();
    world.put(second, second, &[], false);
    world.answer(second, &ending(Outcome::Done, &[0]));
    world.end();
}

/// A confirmation was taken for that of a later registration, while the release
/// of the earlier one was still on its way to the owner.
#[test]
fn a_late_confirmation_is_not_mistaken_for_the_next_one() {
    let mut world = World::new(3);
    let borrower = 3;
    let owner = world.start(borrower, &returning(1));
    world.put(owner, owner, &[], false);
    let holder = world.start(owner, &with_nested(&[0]));
    world.take_argument(holder, 0);
    world.answer(holder, &Ending::done());
    world.drain(holder, owner);
    // The borrower registers with the owner, and lets go before it is confirmed.
    world.answer(owner, &ending(Outcome::Done, &[0]));
    world.drop_ref(owner, 0);
    world.drain(owner, borrower);
    world.deliver(borrower, owner);
    world.deliver(borrower, owner);
    world.drop_ref(borrower, 0);
    // The holder gives it the reference again, and lets go when it has registered.
    assert_eq!(world.start(holder, &with_nested(&[0])), borrower);
    world.take_argument(borrower, 0);
    world.answer(borrower, &Ending::done());
    world.drain(borrower, holder);
    world.drain(owner, borrower);
    world.drain(borrower, holder);
    world.drop_ref(holder, 0);
    world.drain(holder, owner);
    world.drain(borrower, owner);
    world.end();
}

/// A constructor that still waited for an argument when the last handle went
/// was begun when the argument came, and its actor never ended.
#[test]
fn an_actor_without_handles_does_not_begin() {
    let mut world = World::new(1);
    let worker = world.start(DRIVER, &returning(1));
    world.create_actor(DRIVER, &Order { refs: vec![0], ..Order::default() });
    world.drop_ref(DRIVER, 1);
    world.answer(worker, &Ending::done());
    world.deliver_all();
    assert!(world.processes.values().all(|process| process.actor.is_none()));
    world.end();
}

/// A failed argument of a constructor is the end of its actor for all who have a handle.
#[test]
fn an_actor_whose_argument_failed_is_dead_everywhere() {
    let mut world = World::new(2);
    let worker = world.start(DRIVER, &returning(1));
    world.create_actor(DRIVER, &Order { refs: vec![0], ..Order::default() });
    let other = world.start(DRIVER, &Order { shape: 1, ..with_nested(&[1]) });
    world.take_argument(other, 0);
    world.call(other, 0, &Order { watch: true, ..returning(1) });
    world.answer(worker, &ending(Outcome::Raised, &[]));
    world.end();
}

/// The entry of an actor was never forgotten by those who had had a handle.
#[test]
fn actors_are_forgotten_with_their_last_handle() {
    let mut world = World::new(1);
    world.create_actor(DRIVER, &Order::default());
    let worker = world.start(DRIVER, &with_nested(&[0]));
    world.take_argument(worker, 0);
    world.call(worker, 0, &returning(1));
    world.answer(worker, &Ending::done());
    world.run_all();
    assert_eq!(world.processes[&worker].owner.actors.len(), 1);
    world.drop_ref(worker, 0);
    world.drop_ref(worker, 0);
    assert!(world.processes[&worker].owner.actors.is_empty());
    world.end();
}

/// Never went wrong, and random histories seldom come here: what a worker
/// returns of a third process stays held until the receiver is registered there.
#[test]
fn what_is_returned_is_held_until_its_owner_knows_the_receiver() {
    let mut world = World::new(2);
    world.put(DRIVER, DRIVER, &[], false);
    let giver = world.start(DRIVER, &with_nested(&[0]));
    world.take_argument(giver, 0);
    world.answer(giver, &Ending::done());
    world.deliver_all();
    world.drop_ref(DRIVER, 0);
    world.tick(30_000_000);
    let receiver = 2;
    assert_eq!(world.start(receiver, &returning(1)), giver);
    world.answer(giver, &ending(Outcome::Done, &[0]));
    world.drop_ref(giver, 0);
    // The registration is late; all else is not.
    world.drain(giver, receiver);
    world.drain(receiver, giver);
    world.drain(giver, DRIVER);
    world.end();
}
