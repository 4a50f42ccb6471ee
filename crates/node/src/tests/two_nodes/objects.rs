//! Copies of other nodes' objects, and lending.

use oxiray_wire::control::{Allocate, Stored};

use super::*;

const SIZE: u64 = 300 << 10;

impl Nodes {
    /// A process of a node makes an object there: its key.
    fn make(&mut self, by: ProcessId) -> StoreKey {
        let allocate = Allocate { request: 1, size: SIZE, owner: by.0 };
        self.say(by, to_node::Body::Allocate(allocate));
        let keys = self.take(by.node(), |_, body| match body {
            Body::Allocated(allocated) => {
                assert_eq!(allocated.refused, None);
                Some(StoreKey(allocated.key))
            }
            _ => None,
        });
        self.parts[&by.node()].table.seal(keys[0], true);
        keys[0]
    }

    fn pull(&mut self, by: ProcessId, request: u64, node: u32, key: StoreKey) {
        let pull = PullObject { request, node, key: key.0, len: SIZE, refused: None };
        self.say(by, to_node::Body::Pull(pull));
    }

    /// Answers to pulls at a node: the request, and the key here or `None`.
    fn pulled(&mut self, node: u32) -> Vec<(u64, Option<StoreKey>)> {
        self.take(node, |_, body| match body {
            Body::Pulled(pulled) => {
                Some((pulled.request, pulled.refused.is_none().then_some(StoreKey(pulled.key))))
            }
            _ => None,
        })
    }

    /// The bytes of all copies come that are under way at a node.
    fn transfer(&mut self, node: u32) -> usize {
        let transfers = std::mem::take(&mut self.parts.get_mut(&node).unwrap().asked.transfers);
        let count = transfers.len();
        for transfer in transfers {
            assert!(self.parts[&transfer.node].asked.lent.contains(&transfer.grant));
            self.event(node, Event::Transferred(transfer.key, Ok(())));
        }
        self.settle();
        count
    }

    fn is_empty(&self, node: u32) -> bool {
        self.parts[&node].node.keeper.usage().used == 0
    }
}

/// Four nodes; B has an object, and its owner is a driver there.
fn with_object() -> (Nodes, ProcessId, StoreKey) {
    let mut nodes = Nodes::new(&[1, 1, 1, 1]);
    let owner = nodes.admit(B, ProcessKind::Driver);
    let key = nodes.make(owner);
    (nodes, owner, key)
}

#[test]
fn a_copy_is_brought_once_however_many_want_it() {
    let (mut nodes, _, key) = with_object();
    let other = nodes.admit(A, ProcessKind::Driver);
    for (by, request) in [(DRIVER, 1), (DRIVER, 2), (other, 3)] {
        nodes.pull(by, request, B, key);
    }
    nodes.settle();
    assert_eq!(nodes.transfer(A), 1);
    let pulled = nodes.pulled(A);
    assert_eq!(pulled.iter().map(|(request, _)| *request).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(pulled.iter().all(|(_, here)| *here == pulled[0].1 && here.is_some()));
    assert!(nodes.parts[&B].asked.lent.is_empty(), "the reader is done");
    nodes.pull(other, 4, B, key);
    assert_eq!(nodes.pulled(A), [(4, pulled[0].1)], "it is here");
}

#[test]
fn when_an_object_is_freed_its_copies_go() {
    let (mut nodes, owner, key) = with_object();
    nodes.pull(DRIVER, 1, B, key);
    nodes.settle();
    nodes.transfer(A);
    assert!(!nodes.is_empty(A));
    nodes.say(owner, to_node::Body::Free(Stored { keys: vec![key.0] }));
    nodes.settle();
    assert!(nodes.is_empty(A) && nodes.is_empty(B));
    nodes.pulled(A);
    nodes.pull(DRIVER, 2, B, key);
    nodes.settle();
    assert_eq!(nodes.pulled(A), [(2, None)]);
    assert!(nodes.is_empty(A), "nor is room kept for it");
}

#[test]
fn an_object_that_is_being_read_stays_until_the_reader_is_done() {
    let (mut nodes, owner, key) = with_object();
    nodes.pull(DRIVER, 1, B, key);
    nodes.settle();
    nodes.say(owner, to_node::Body::Free(Stored { keys: vec![key.0] }));
    nodes.settle();
    assert!(!nodes.is_empty(B));
    nodes.transfer(A);
    assert!(nodes.is_empty(B));
}

#[test]
fn a_copy_whose_source_left_is_refused() {
    let (mut nodes, _, key) = with_object();
    nodes.pull(DRIVER, 1, B, key);
    nodes.lose(B);
    nodes.settle();
    assert_eq!(nodes.pulled(A), [(1, None)]);
    nodes.pull(DRIVER, 2, B, key);
    assert_eq!(nodes.pulled(A), [(2, None)]);
    assert!(nodes.is_empty(A));
}

#[test]
fn bytes_that_do_not_come_are_asked_for_again_and_then_refused() {
    let (mut nodes, _, key) = with_object();
    nodes.pull(DRIVER, 1, B, key);
    for attempt in 1..=3 {
        nodes.settle();
        let transfer = nodes.parts.get_mut(&A).unwrap().asked.transfers.pop();
        let transfer = transfer.unwrap_or_else(|| panic!("attempt {attempt}"));
        nodes.event(A, Event::Transferred(transfer.key, Err("broken".into())));
    }
    nodes.settle();
    assert_eq!(nodes.pulled(A), [(1, None)]);
    assert!(nodes.parts[&B].asked.lent.is_empty() && nodes.is_empty(A));
}

#[test]
fn copies_go_when_memory_is_short_and_come_again() {
    let (mut nodes, owner, key) = with_object();
    nodes.pull(DRIVER, 1, B, key);
    nodes.settle();
    nodes.transfer(A);
    nodes.pulled(A);
    nodes.now += 20 * SECOND;
    // A megabyte has room for three.
    for _ in 0..3 {
        nodes.make(DRIVER);
    }
    nodes.say(owner, to_node::Body::Unpinned(Stored { keys: Vec::new() }));
    nodes.pull(DRIVER, 2, B, key);
    assert_eq!(nodes.pulled(A), [], "it is not here any more");
}

#[test]
fn few_read_at_a_time_and_the_others_are_sent_on() {
    let (mut nodes, _, key) = with_object();
    let readers: Vec<ProcessId> =
        [C, D].into_iter().map(|node| nodes.admit(node, ProcessKind::Driver)).collect();
    nodes.pull(readers[0], 1, B, key);
    nodes.pull(readers[1], 2, B, key);
    nodes.settle();
    nodes.pull(DRIVER, 3, B, key);
    nodes.settle();
    assert_eq!(nodes.parts[&B].asked.lent.len(), 2);
    assert!(nodes.parts[&A].asked.transfers.is_empty(), "the third waits");
    nodes.transfer(C);
    assert_eq!(nodes.pulled(C).len(), 1);
    let [transfer] = nodes.parts[&A].asked.transfers[..] else { panic!("it has its turn") };
    assert!([B, C].contains(&transfer.node));
    nodes.transfer(A);
    nodes.transfer(D);
    assert!(nodes.parts.values().all(|part| part.asked.lent.is_empty()));
}

#[test]
fn a_reader_that_left_holds_nothing() {
    let (mut nodes, owner, key) = with_object();
    nodes.pull(DRIVER, 1, B, key);
    nodes.settle();
    assert_eq!(nodes.parts[&B].asked.lent.len(), 1);
    nodes.lose(A);
    assert!(nodes.parts[&B].asked.lent.is_empty());
    nodes.say(owner, to_node::Body::Free(Stored { keys: vec![key.0] }));
    assert!(nodes.is_empty(B));
}

#[test]
fn copies_go_with_the_node_that_would_say_when_they_are_freed() {
    let (mut nodes, _, key) = with_object();
    nodes.pull(DRIVER, 1, B, key);
    nodes.settle();
    nodes.transfer(A);
    assert!(!nodes.is_empty(A));
    nodes.lose(B);
    nodes.settle();
    assert!(nodes.is_empty(A));
}

#[test]
fn a_copy_that_was_read_elsewhere_goes_when_its_object_does() {
    const E: u32 = 5;
    let mut nodes = Nodes::new(&[1; 5]);
    let owner = nodes.admit(B, ProcessKind::Driver);
    let key = nodes.make(owner);
    let [at_c, at_d, at_e] = [C, D, E].map(|node| nodes.admit(node, ProcessKind::Driver));
    nodes.pull(at_c, 1, B, key);
    nodes.settle();
    nodes.transfer(C);
    // Two read it at B, so that the next is sent to C.
    for reader in [at_d, at_e, DRIVER] {
        nodes.pull(reader, 2, B, key);
        nodes.settle();
    }
    let [transfer] = nodes.parts[&A].asked.transfers[..] else { panic!("it is sent on") };
    assert_eq!(transfer.node, C);
    for node in [A, D, E] {
        nodes.transfer(node);
        assert!(!nodes.is_empty(node));
    }
    nodes.say(owner, to_node::Body::Free(Stored { keys: vec![key.0] }));
    nodes.settle();
    assert!((A..=E).all(|node| nodes.is_empty(node)));
}
