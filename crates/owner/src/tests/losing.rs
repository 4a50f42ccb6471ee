//! Histories with a node that is lost in the middle. What must hold is checked at every step and
//! by `World::end`.

use oxiray_ids::{ActorId, JobId, ProcessId, TaskId};
use oxiray_wire::control::MemoryEnd;
use oxiray_wire::frame::{FailureCode, RefName, Returns};

use super::hostile::Ears;
use super::user::Order;
use super::work::Ending;
use super::world::{DRIVER, World};
use crate::object::Content;
use crate::owner::Owner;

const ELSEWHERE: u32 = 1;

fn stored() -> Ending {
    Ending { stored: true, ..Ending::done() }
}

fn retried(refs: &[usize]) -> Order {
    Order { refs: refs.to_vec(), returns: 1, retries: 3, watch: true, ..Order::default() }
}

impl World {
    /// A driver with a value (its first reference) that only node 1 has, and a worker left on
    /// each of both nodes.
    fn with_value_elsewhere() -> Self {
        let mut world = World::on_nodes(2, 4);
        let here = world.net.node.idle.clone().into_iter().filter(|w| node_of(*w) == 0);
        let here: Vec<u64> = here.collect();
        world.net.node.idle.retain(|worker| !here.contains(worker));
        let maker = world.start(DRIVER, &retried(&[]));
        world.answer(maker, &stored());
        world.drain(maker, DRIVER);
        // Its lease goes back.
        world.tick(30_000_000);
        world.net.node.idle.extend(here);
        world
    }

    /// A worker on a node has begun a task of the driver that takes the value.
    fn start_at(&mut self, node: u32, order: &Order) -> u64 {
        let others: Vec<u64> = self.net.node.idle.clone();
        let (there, others) = others.into_iter().partition(|w| node_of(*w) == node);
        self.net.node.idle = there;
        self.submit(DRIVER, order);
        if self.net.node.grant(0) {
            self.read_mail(DRIVER);
        }
        self.net.node.idle.extend::<Vec<u64>>(others);
        let at = self.processes.keys().copied().filter(|p| *p != DRIVER && node_of(*p) == node);
        let worker = at.into_iter().find(|p| !self.is_quiet(DRIVER, *p)).expect("pushed");
        self.drain(DRIVER, worker);
        self.begin_next(worker);
        worker
    }

    fn is_quiet(&self, from: u64, to: u64) -> bool {
        self.net.channels.get(&(from, to)).is_none_or(|channel| channel.is_empty())
    }

    fn last(&self) -> Option<&Content> {
        let driver = &self.processes[&DRIVER];
        driver.owner.content(*driver.refs.last()?)
    }

    fn ends_well(mut self) {
        self.run_all();
        assert!(matches!(self.last(), Some(Content::Inline(_))), "{:?}", self.last());
        self.end();
    }
}

fn node_of(process: u64) -> u32 {
    ProcessId(process).node()
}

/// The driver ended with "arguments are complete": the task went back with its worker, before
/// its argument was made again.
#[test]
fn a_task_whose_worker_and_argument_are_lost_waits_for_the_argument() {
    for at in [0, ELSEWHERE] {
        let mut world = World::with_value_elsewhere();
        let worker = world.start_at(at, &retried(&[0]));
        world.lose_node(ELSEWHERE);
        world.deliver_all();
        world.kill(worker);
        world.deliver_all();
        world.ends_well();
    }
}

/// The same, of a worker that lives and hears first that the argument is lost.
#[test]
fn a_task_that_could_not_read_its_argument_is_free_to_go_again() {
    for heard_before in [false, true] {
        let mut world = World::with_value_elsewhere();
        let order = Order { retries: 0, ..retried(&[0]) };
        let submitted_first = world.start_at(0, &order);
        world
            .processes
            .get_mut(&submitted_first)
            .expect("alive")
            .running
            .as_mut()
            .expect("begun")
            .unread = true;
        if heard_before {
            world.lose_node(ELSEWHERE);
            world.deliver_all();
        }
        world.answer(submitted_first, &Ending::done());
        world.drain(submitted_first, DRIVER);
        world.lose_node(ELSEWHERE);
        world.ends_well();
    }
}

/// A task that was pushed but not begun came back while its argument was being made again.
#[test]
fn a_task_taken_back_waits_for_a_lost_argument() {
    let mut world = World::with_value_elsewhere();
    let worker = world.start_at(0, &Order::default());
    world.answer(worker, &Ending::done());
    world.drain(worker, DRIVER);
    world.start_at(0, &Order::default());
    world.submit(DRIVER, &retried(&[0]));
    world.lose_node(ELSEWHERE);
    world.deliver_all();
    world.block(worker);
    world.deliver_all();
    world.ends_well();
}

/// As of tasks, of the calls that an actor had when it was lost, and their arguments before or
/// after it.
#[test]
fn calls_of_a_lost_actor_wait_for_a_lost_argument() {
    for (begun, actor_first) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut world = World::with_value_elsewhere();
        world.create_actor(DRIVER, &Order { retries: 3, ..Order::default() });
        let actor = *world.processes.iter().find(|(_, p)| p.actor.is_some()).expect("it").0;
        world.answer(actor, &Ending::done());
        world.deliver_all();
        (0..3).for_each(|_| world.call(DRIVER, 1, &retried(&[0])));
        world.deliver_all();
        if begun {
            world.begin_next(actor);
        }
        if actor_first {
            world.kill(actor);
        }
        world.lose_node(ELSEWHERE);
        world.deliver_all();
        world.kill(actor);
        world.deliver_all();
        world.ends_well();
    }
}

/// An actor that lives made its caller's call fail with the argument that it could not read.
#[test]
fn a_call_that_could_not_read_its_argument_goes_again_in_order() {
    let mut world = World::with_value_elsewhere();
    world.create_actor(DRIVER, &Order::default());
    let actor = *world.processes.iter().find(|(_, p)| p.actor.is_some()).expect("it").0;
    world.answer(actor, &Ending::done());
    world.deliver_all();
    for refs in [&[0][..], &[0], &[]] {
        world.call(DRIVER, 1, &Order { retries: 0, ..retried(refs) });
    }
    world.deliver_all();
    world.net.lost.insert(ELSEWHERE);
    for _ in 0..3 {
        world.begin_next(actor);
        world.answer(actor, &Ending::done());
        world.drain(actor, DRIVER);
    }
    assert!(matches!(world.last(), Some(Content::Inline(_))), "the last call needed nothing");
    world.net.lost.remove(&ELSEWHERE);
    world.lose_node(ELSEWHERE);
    world.ends_well();
}

/// A value that cannot be made again is lost, and so is what needs it: said, not waited for.
#[test]
fn what_cannot_be_made_again_is_said_to_be_lost() {
    let mut world = World::on_nodes(2, 1);
    let maker = world.start(DRIVER, &Order { retries: 0, ..retried(&[]) });
    world.answer(maker, &stored());
    world.drain(maker, DRIVER);
    world.lose_node(ELSEWHERE);
    world.submit(DRIVER, &retried(&[0]));
    world.run_all();
    let Some(Content::Failed(failure)) = world.last() else { panic!("it is lost") };
    assert_eq!(failure.code, FailureCode::Unrecoverable);
    world.end();
}

/// The connection of two nodes broke and came back: what the other's processes owned was dead for
/// ever, and tasks that were pushed to them waited for ever.
#[test]
fn a_process_that_can_be_reached_again_is_not_dead() {
    let (mut owner, mut ears) = (Owner::new(ProcessId(0)), Ears::default());
    let peer = ProcessId::new(1, 7);
    let name = |counter| {
        let task = TaskId::new(ActorId::home(JobId([1; 4]), peer), peer, counter);
        RefName { id: task.object(1), owner: peer }
    };
    owner.on_process_died(peer, MemoryEnd::Not, "its node left", &mut ears);
    let lost = owner.read_ref(name(1), &mut ears);
    assert!(matches!(owner.content(lost), Some(Content::Failed(_))));
    owner.on_channel(peer);
    let there = owner.read_ref(name(2), &mut ears);
    assert_eq!(owner.content(there), None);
    owner.validate();
}

/// An item that an actor had yielded was said to be lost for good, when the actor went with it: as
/// if it lived and had passed it. If the call is made again, so is the item; else it fails by what
/// the call fails by.
#[test]
fn an_item_that_is_lost_with_its_actor_fares_as_the_call() {
    for retries in [3, 0] {
        let mut world = World::on_nodes(2, 4);
        world.net.node.idle.retain(|worker| node_of(*worker) == ELSEWHERE);
        world.create_actor(DRIVER, &Order { retries: 3, ..Order::default() });
        let actor = *world.processes.iter().find(|(_, p)| p.actor.is_some()).expect("it").0;
        assert_eq!(node_of(actor), ELSEWHERE);
        world.answer(actor, &Ending::done());
        world.deliver_all();
        let stream = Some(Returns::Stream { ahead: 1 });
        world.call(DRIVER, 0, &Order { retries, stream, ..Order::default() });
        world.deliver_all();
        world.begin_next(actor);
        assert!(world.yield_item(actor, &[], true));
        world.deliver_all();
        assert!(world.take_item(DRIVER, 0));
        let item = *world.processes[&DRIVER].refs.last().expect("the item");
        world.lose_node(ELSEWHERE);
        world.run_all();
        let code = match world.processes[&DRIVER].owner.content(item).expect("it has ended") {
            Content::Failed(failure) => Some(failure.code),
            _ => None,
        };
        let expected = (retries == 0).then_some(FailureCode::ActorUnavailable);
        assert_eq!(code, expected);
        world.end();
    }
}
