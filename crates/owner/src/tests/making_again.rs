//! Values that were let go, and lost, and are made again from recipes. What must hold is checked
//! at every step and by `World::end`.

use oxiray_ids::{Origin, ProcessId, StoreKey};
use oxiray_wire::control::MemoryEnd;
use oxiray_wire::frame::{Answer, Body, FailureCode, Outcome, Value};

use super::net::Side;
use super::user::Order;
use super::work::Ending;
use super::world::{DRIVER, Process, World};
use crate::object::Content;

const ELSEWHERE: u32 = 1;

impl World {
    /// A world whose tasks all run at node 1 and store what they return there, until that is lost.
    fn elsewhere() -> Self {
        let mut world = World::on_nodes(2, 1);
        world.stores = true;
        world
    }

    /// `x = step.remote(x)`: the driver holds only what came last.
    fn step(&mut self, retries: i32) {
        let refs = if self.processes[&DRIVER].refs.is_empty() { vec![] } else { vec![0] };
        self.submit(DRIVER, &Order { refs, returns: 1, retries, ..Order::default() });
        if self.processes[&DRIVER].refs.len() > 1 {
            self.drop_ref(DRIVER, 0);
        }
        self.run_all();
    }

    fn values(&self) -> usize {
        self.net.extents.values().filter(|freed| !**freed).count()
    }

    fn recipes(&self) -> usize {
        self.processes[&DRIVER].owner.recipes()
    }

    fn only(&self) -> Option<&Content> {
        let driver = &self.processes[&DRIVER];
        assert_eq!(driver.refs.len(), 1);
        driver.owner.content(driver.refs[0])
    }

    fn failure(&self) -> (FailureCode, &str) {
        let Some(Content::Failed(failure)) = self.only() else { panic!("{:?}", self.only()) };
        (failure.code, &failure.message)
    }
}

/// A recipe held the values of its arguments: all of a chain were stored for one that lives.
#[test]
fn a_chain_keeps_its_last_value_and_all_its_recipes() {
    let mut world = World::elsewhere();
    for length in 1..=50 {
        world.step(3);
        assert_eq!((world.values(), world.recipes()), (1, length), "L-3");
    }
    let node = world.processes.keys().map(|p| ProcessId(*p).node()).max().expect("some");
    assert_eq!(node, ELSEWHERE);
    world.lose_node(ELSEWHERE);
    world.run_all();
    let Some(Content::Stored { origin, .. }) = world.only() else { panic!("{:?}", world.only()) };
    assert_ne!(origin.node, ELSEWHERE);
    assert!(world.begun.values().all(|(begun, _)| *begun == 2), "each once more, and no oftener");
    assert_eq!(world.recipes(), 50);
    world.end();
}

/// Only as deep as it must: what somebody still holds elsewhere is not made again.
#[test]
fn a_chain_is_made_again_from_where_its_values_end() {
    let mut world = World::on_nodes(3, 0);
    world.stores = true;
    world.spawn_worker(2);
    world.step(3);
    // The first is at node 2, and stays.
    world.with(DRIVER, |driver, _| {
        driver.owner.add_ref(driver.refs[0]);
        driver.refs.push(driver.refs[0]);
    });
    world.net.node.idle.clear();
    world.spawn_worker(ELSEWHERE);
    for _ in 0..3 {
        world.submit(DRIVER, &Order { refs: vec![1], returns: 1, retries: 1, ..Order::default() });
        world.drop_ref(DRIVER, 1);
        world.run_all();
    }
    world.lose_node(ELSEWHERE);
    world.run_all();
    let mut runs: Vec<u32> = world.begun.values().map(|(begun, _)| *begun).collect();
    runs.sort_unstable();
    assert_eq!(runs, [1, 2, 2, 2]);
    world.end();
}

/// It was let go, and then could not be made again.
#[test]
fn what_was_made_before_anything_could_be_lost_stays_for_what_takes_it() {
    let mut world = World::on_nodes(2, 0);
    world.stores = true;
    world.spawn_worker(0);
    world.step(3);
    world.net.node.idle.clear();
    world.spawn_worker(ELSEWHERE);
    world.step(3);
    assert_eq!((world.values(), world.recipes()), (2, 1), "L-3");
    world.spawn_worker(0);
    world.lose_node(ELSEWHERE);
    world.run_all();
    assert!(matches!(world.only(), Some(Content::Stored { .. })), "{:?}", world.only());
    world.drop_ref(DRIVER, 0);
    assert_eq!(world.recipes(), 0);
    world.end();
}

#[test]
fn a_step_is_made_again_as_often_as_its_retries_allow() {
    let mut world = World::elsewhere();
    world.step(1);
    world.step(3);
    world.lose_node(ELSEWHERE);
    world.run_all();
    assert!(matches!(world.only(), Some(Content::Stored { .. })));
    world.lose_node(2);
    world.run_all();
    let (code, message) = world.failure();
    assert_eq!(code, FailureCode::Unrecoverable);
    assert!(message.contains("as often as its max_retries allows"), "{message}");
    world.end();
}

#[test]
fn a_value_that_was_put_and_let_go_is_not_made_again() {
    let mut world = World::elsewhere();
    world.put(DRIVER, DRIVER, &[], true);
    world.step(3);
    assert_eq!(world.values(), 1);
    world.lose_node(ELSEWHERE);
    world.run_all();
    let (code, message) = world.failure();
    assert_eq!(code, FailureCode::Unrecoverable);
    assert!(message.contains("it was put"), "{message}");
    world.end();
}

/// L-4: the oldest recipes go, and what needs them says so.
#[test]
fn recipes_have_a_limit_in_bytes() {
    let mut world = World::elsewhere();
    world.with(DRIVER, |driver, _| driver.owner.set_max_lineage_bytes(5_000));
    (0..100).for_each(|_| world.step(3));
    let kept = world.recipes();
    assert!((2..20).contains(&kept), "{kept}");
    let stored: Vec<_> = world.net.stored.keys().copied().collect();
    stored.into_iter().for_each(|id| world.taint(id));
    world.lose_node(ELSEWHERE);
    world.run_all();
    let (code, message) = world.failure();
    assert_eq!(code, FailureCode::Unrecoverable);
    assert!(message.contains("max_lineage_bytes"), "{message}");
    world.end();
}

impl Process {
    /// A chain of tasks that a worker answers at once, with values in its store.
    fn store_chain(&mut self, length: usize, worker: u64, out: &mut Side<'_>) {
        for _ in 0..length {
            self.chain(0, 1, out);
            let last = out.net.tasks.range((DRIVER, 0)..(DRIVER + 1, 0)).next_back();
            let token = last.expect("pushed").0.1;
            let key = StoreKey(out.net.extents.len() as u64);
            out.net.extents.insert(key.0, false);
            let origin = Origin { node: ELSEWHERE, key };
            let body = Body::Stored { origin, len: 1 };
            let values = [Value { body, contained: vec![] }].into();
            let outcome = Outcome::Done;
            let answer = Answer { token, outcome, ran_ns: 1_000, values, retained: vec![] };
            self.owner.on_answer(ProcessId(worker), answer, out);
            let before = self.refs.swap_remove(0);
            self.owner.drop_ref(before, out);
        }
    }
}

/// What goes down a chain does so without filling the stack.
#[test]
fn a_long_chain_is_made_again_and_goes() {
    const LENGTH: usize = 100_000;
    let mut world = World::elsewhere();
    let order = Order { returns: 1, retries: 1, ..Order::default() };
    let worker = world.start(DRIVER, &order);
    world.answer(worker, &Ending { stored: true, ..Ending::done() });
    world.drain(worker, DRIVER);
    world.with(DRIVER, |driver, out| driver.store_chain(LENGTH, worker, out));
    assert_eq!((world.values(), world.recipes()), (1, LENGTH + 1));
    world.with(DRIVER, |driver, out| driver.owner.on_node_lost(ELSEWHERE, "lost", out));
    assert_eq!(world.recipes(), 0, "all are under way");
    world.with(DRIVER, |driver, out| {
        assert_eq!(driver.owner.counts().1, LENGTH + 1);
        // The first of them has begun, and is lost for good: so are all.
        out.net.claims.clear();
        driver.owner.on_process_died(ProcessId(worker), MemoryEnd::Not, "died", out);
    });
    assert!(matches!(world.only(), Some(Content::Failed(_))));
    assert_eq!(world.processes[&DRIVER].owner.counts(), (1, 0));
}
