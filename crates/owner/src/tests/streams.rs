//! Streams: what workers yield, and what programs read; and histories of them.

use oxiray_ids::{ObjectId, ProcessId};
use oxiray_wire::frame::{Frame, Outcome, RefName, Returns, Value, Yield, item_object};

use super::user::Order;
use super::work::Ending;
use super::world::{DRIVER, World};
use crate::object::ObjectKey;
use crate::owner::Outbox;
use crate::stream::Next;

/// No attempt yields more.
const MOST_ITEMS: u32 = 6;

impl World {
    /// The running task of a process yields an item, if it may; whether it did.
    pub(super) fn yield_item(&mut self, process: u64, contains: &[usize], stored: bool) -> bool {
        let state = self.processes.get_mut(&process).expect("alive");
        let Some(running) = &mut state.running else { return false };
        let ahead = match running.returns {
            Returns::Fixed(_) => return false,
            Returns::Stream { ahead } => ahead,
            Returns::Gathered => 0,
        };
        let is_full = ahead > 0 && running.yielded.saturating_sub(running.read) >= ahead;
        let ends = running.no_reader || running.cancelled || running.unread;
        if is_full || ends || running.yielded == MOST_ITEMS {
            return false;
        }
        running.yielded += 1;
        let (task, item) = (running.id, running.yielded);
        let (giver, token) = (ProcessId(running.giver), running.token);
        let most = self.items.entry(task).or_default();
        *most = item.max(*most);
        let id = item_object(task, item);
        let inner = self.processes.get_mut(&process).expect("alive").counted(contains, true);
        let contained = self.acyclic(process, id, inner);
        let before = self.net.stored.get(&id).copied();
        let content = self.content(process, id, stored);
        if let Some(before) = before {
            // The one that was there is kept.
            self.net.stored.insert(id, before);
        }
        self.with(process, |process, out| {
            let names = contained.iter().map(|key| process.owner.name(*key)).collect();
            process.owner.hand_over(giver, token, item, contained);
            let value = Value { body: content.as_body(), contained: names };
            out.send(giver, &Frame::Yield(Yield { token, item, value }));
        });
        true
    }

    /// Those of the references that may be in a value.
    fn acyclic(&mut self, process: u64, id: ObjectId, inner: Vec<ObjectKey>) -> Vec<ObjectKey> {
        let (fine, cyclic): (Vec<_>, Vec<_>) = inner.into_iter().partition(|key| {
            let inner = self.processes[&process].owner.id_of(*key);
            self.contain(id, inner)
        });
        self.with(process, |process, out| {
            cyclic.iter().for_each(|key| process.owner.drop_ref(*key, out));
        });
        fine
    }

    /// Before a stream ends well it yields what an attempt before has yielded; `false`: it has to
    /// wait for its reader.
    pub(super) fn yield_rest(&mut self, process: u64, ending: &Ending) -> bool {
        loop {
            let Some(running) = &self.processes[&process].running else { return true };
            let most = self.items.get(&running.id).copied().unwrap_or(0);
            let ends = running.no_reader || running.cancelled || running.unread;
            if ends || running.yielded >= most {
                return true;
            }
            if !self.yield_item(process, &[], ending.stored) {
                return false;
            }
        }
    }

    /// The references to what a task has yielded that returns them.
    pub(super) fn gather(&mut self, process: u64) -> Vec<ObjectKey> {
        let Some(running) = &self.processes[&process].running else { return Vec::new() };
        if running.returns != Returns::Gathered {
            return Vec::new();
        }
        let (task, giver, yielded) = (running.id, running.giver, running.yielded);
        // What an actor says to itself it has heard.
        self.drain(process, process);
        self.with(process, |process, out| {
            let named = (1..=yielded)
                .map(|item| RefName { id: item_object(task, item), owner: ProcessId(giver) });
            named.map(|name| process.owner.read_ref(name, out)).collect()
        })
    }

    /// Whether an item that a process yielded is on its way to who owns it.
    pub(super) fn is_yielded(&self, by: u64, id: ObjectId) -> bool {
        let is_item = |(to, bytes): (u64, &Vec<u8>)| match Frame::decode(bytes) {
            Ok(Frame::Yield(Yield { token, item, .. })) => {
                let task = self.net.tasks.get(&(to, token));
                task.is_some_and(|task| item_object(*task, item) == id)
            }
            _ => false,
        };
        let sent = self.net.channels.iter().filter(|((from, _), _)| *from == by);
        let mut frames = sent.flat_map(|((_, to), frames)| frames.iter().map(|bytes| (*to, bytes)));
        id.index() > 1 && frames.any(is_item)
    }

    /// A worker hears how far the reader of a stream is.
    pub(super) fn reader_is_at(
        &mut self,
        giver: u64,
        process: u64,
        token: u64,
        items: Option<u32>,
    ) {
        let state = self.processes.get_mut(&process).expect("alive");
        let running = state.running.as_mut();
        let Some(running) = running.filter(|r| (r.giver, r.token) == (giver, token)) else {
            return;
        };
        match items {
            Some(items) => running.read = running.read.max(items),
            None => running.no_reader = true,
        }
    }

    /// Takes the next item of a stream that a process reads; whether there was something.
    pub(super) fn take_item(&mut self, process: u64, place: usize) -> bool {
        self.with(process, |process, out| {
            let Some(at) = place.checked_rem(process.readers.len()) else { return false };
            let (task, read) = process.readers[at];
            match process.owner.next_item(task, out) {
                Next::NotYet => return false,
                Next::Item(key) => {
                    assert_eq!(process.owner.id_of(key), item_object(task, read + 1), "Y-1");
                    process.readers[at].1 += 1;
                    process.refs.push(key);
                }
                Next::End => {
                    assert!(process.owner.is_read(task));
                    process.readers.swap_remove(at);
                    process.owner.drop_reader(task, out);
                }
            }
            true
        })
    }

    /// Reads whatever has come.
    pub(super) fn read_all(&mut self, process: u64) {
        let Some(state) = self.processes.get(&process) else { return };
        for place in (0..state.readers.len()).rev() {
            while self.processes[&process].readers.len() > place && self.take_item(process, place) {
            }
        }
    }

    /// References to the next items of a stream, whether they have come or not.
    pub(super) fn peek(&mut self, process: u64, place: usize) {
        self.with(process, |process, out| {
            if let Some(at) = place.checked_rem(process.readers.len()) {
                process.refs.extend(process.owner.peek(process.readers[at].0, 2, out));
            }
        });
    }

    pub(super) fn drop_reader(&mut self, process: u64, place: usize) {
        self.with(process, |process, out| {
            if let Some(at) = place.checked_rem(process.readers.len()) {
                let (task, _) = process.readers.swap_remove(at);
                process.owner.drop_reader(task, out);
            }
        });
        self.obey_node();
    }
}

fn stream(ahead: u32, retries: i32) -> Order {
    Order { stream: Some(Returns::Stream { ahead }), retries, ..Order::default() }
}

/// A driver whose stream runs at the one worker.
fn begun(order: &Order) -> (World, u64) {
    let mut world = World::new(1);
    world.submit(DRIVER, order);
    world.net.node.grant(0);
    world.deliver_all();
    let worker = *world.processes.keys().last().expect("a worker");
    world.begin_next(worker);
    (world, worker)
}

#[test]
fn y1_an_attempt_after_another_gives_nothing_twice() {
    let (mut world, worker) = begun(&stream(0, 1));
    (0..3).for_each(|_| assert!(world.yield_item(worker, &[], true)));
    world.deliver_all();
    assert!(world.take_item(DRIVER, 0));
    world.answer(worker, &Ending { outcome: Outcome::Retryable, ..Ending::done() });
    // All five, of which the first three are let go: `take_item` looks at their order.
    world.items.values_mut().for_each(|most| *most = 5);
    world.run_all();
    assert_eq!(world.processes[&DRIVER].refs.len(), 1 + 5);
    world.end();
}

#[test]
fn y2_a_worker_waits_for_its_reader() {
    let (mut world, worker) = begun(&stream(2, 0));
    assert!(world.yield_item(worker, &[], false));
    assert!(world.yield_item(worker, &[], false));
    assert!(!world.yield_item(worker, &[], false));
    world.deliver_all();
    assert!(!world.yield_item(worker, &[], false), "nothing was read");
    assert!(world.take_item(DRIVER, 0));
    world.deliver_all();
    assert!(world.yield_item(worker, &[], false));
    assert!(!world.yield_item(worker, &[], false));
    world.end();
}

#[test]
fn y3_what_nobody_reads_is_not_made() {
    let (mut world, worker) = begun(&stream(1, 0));
    assert!(world.yield_item(worker, &[], true));
    world.deliver_all();
    world.drop_reader(DRIVER, 0);
    world.deliver_all();
    assert!(world.processes[&worker].running.as_ref().expect("it runs").no_reader);
    world.end();
}

#[test]
fn y4_a_failure_is_the_last_item_and_that_of_whoever_waits() {
    let (mut world, worker) = begun(&stream(0, 0));
    assert!(world.yield_item(worker, &[], false));
    world.deliver_all();
    world.peek(DRIVER, 0);
    world.kill(worker);
    world.deliver_all();
    assert!(world.take_item(DRIVER, 0));
    assert!(world.take_item(DRIVER, 0));
    assert!(world.take_item(DRIVER, 0), "its end");
    assert!(world.processes[&DRIVER].readers.is_empty());
    world.end();
}

#[test]
fn y5_a_lost_item_does_not_wait_for_the_end_of_its_stream() {
    let (mut world, worker) = begun(&stream(1, 2));
    assert!(world.yield_item(worker, &[], true));
    world.deliver_all();
    assert!(world.take_item(DRIVER, 0));
    world.deliver_all();
    // As if it had been at another node, and that were lost.
    let item = *world.processes[&DRIVER].refs.last().expect("the item");
    world.with(DRIVER, |process, out| {
        let object = &mut process.owner.objects[item.index()];
        let content = object.content.take();
        object.rare().gone = crate::lineage::Gone::Yes;
        if let Some(crate::Content::Stored { origin, .. }) = content {
            out.free_stored(origin);
        }
        process.owner.want(item, out);
    });
    world.deliver_all();
    let running = world.processes[&worker].running.as_ref().expect("it runs");
    assert!(running.no_reader, "Y-5: it is stopped");
    world.answer(worker, &Ending { stored: true, ..Ending::done() });
    world.deliver_all();
    assert_eq!(world.processes[&DRIVER].owner.counts().1, 1, "and begun again");
    world.begin_next(worker);
    assert!(world.yield_item(worker, &[], true));
    world.deliver_all();
    assert!(world.processes[&DRIVER].owner.content(item).is_some());
    world.end();
}

/// Node 1 is lost when a task there has returned, in its store, references to so many items.
fn lost_answer(items: u32) -> World {
    let mut world = World::on_nodes(2, 1);
    let worker = *world.processes.keys().last().expect("a worker");
    let order = Order { stream: Some(Returns::Gathered), retries: 3, ..Order::default() };
    world.submit(DRIVER, &order);
    world.net.node.grant(0);
    world.deliver_all();
    world.begin_next(worker);
    (0..items).for_each(|_| assert!(world.yield_item(worker, &[], true)));
    world.answer(worker, &Ending { stored: true, ..Ending::done() });
    world.deliver_all();
    world.lose_node(1);
    world.deliver_all();
    world.stores = true;
    world
}

#[test]
fn y6_a_lost_answer_is_made_again_with_all_its_items() {
    for (first, again) in [(2, 2), (0, 2), (2, 3)] {
        let mut world = lost_answer(first);
        let answer = world.processes[&DRIVER].refs[0];
        let task = world.processes[&DRIVER].owner.id_of(answer).task();
        world.items.insert(task, again);
        world.run_all();
        let owner = &world.processes[&DRIVER].owner;
        assert!(matches!(owner.content(answer), Some(crate::Content::Stored { .. })));
        for item in 1..=again {
            let known = owner.by_id.get(&item_object(task, item)).expect("Y-6: the answer has it");
            assert!(matches!(owner.content(*known), Some(crate::Content::Stored { .. })), "Y-6");
        }
        world.end();
    }
}
