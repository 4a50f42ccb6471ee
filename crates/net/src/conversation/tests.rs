//! Two sides, and a network that carries, repeats, cuts and forgets.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// What travels over a connection, one way.
#[derive(Clone, Debug)]
enum Parcel {
    Opening(Cursor),
    Frame(Vec<u8>),
}

/// One direction of a pair: who speaks has a connection, and older ones may still deliver.
#[derive(Default)]
struct Direction {
    /// Of each connection what is on its way, and where its receiver is.
    connections: Vec<(VecDeque<Parcel>, Option<Cursor>)>,
    receipts: VecDeque<Receipt>,
}

#[derive(Default)]
struct Side {
    talk: Conversation,
    /// How often it was told that all is over, or decided so.
    ends: u64,
    /// What it took in since.
    took: Vec<u64>,
    said: u64,
}

#[derive(Default)]
struct Pair {
    sides: [Side; 2],
    ways: [Direction; 2],
}

impl Pair {
    fn connect(&mut self, from: usize) {
        let talk = &self.sides[from].talk;
        let mut parcels: VecDeque<Parcel> = [Parcel::Opening(talk.opening())].into();
        parcels.extend(talk.kept().map(|frame| Parcel::Frame(frame.to_vec())));
        self.ways[from].connections.push((parcels, None));
    }

    fn say(&mut self, from: usize) {
        let side = &mut self.sides[from];
        // Its epoch and its number.
        let text = side.talk.opening().epoch << 32 | side.said;
        side.said += 1;
        side.talk.say(&[&text.to_le_bytes()]);
        if let Some((parcels, _)) = self.ways[from].connections.last_mut() {
            parcels.push_back(Parcel::Frame(text.to_le_bytes().to_vec()));
        }
    }

    fn over(&mut self, at: usize) {
        let side = &mut self.sides[at];
        side.ends += 1;
        side.said = 0;
        side.took.clear();
        self.reopen(at);
    }

    /// The connection that there is goes on with the next epoch.
    fn reopen(&mut self, at: usize) {
        let opening = self.sides[at].talk.opening();
        if let Some((parcels, _)) = self.ways[at].connections.last_mut() {
            parcels.push_back(Parcel::Opening(opening));
        }
    }

    fn deliver(&mut self, from: usize, which: usize) {
        let connections = &mut self.ways[from].connections;
        let count = connections.len();
        if count == 0 {
            return;
        }
        let (parcels, cursor) = &mut connections[which % count];
        let Some(parcel) = parcels.pop_front() else { return };
        let to = 1 - from;
        match parcel {
            Parcel::Opening(opening) => {
                *cursor = Some(opening);
                let before = self.sides[to].talk.opening().epoch;
                let fate = self.sides[to].talk.on_opening(opening);
                if fate == Fate::Ended {
                    self.over(to);
                } else if self.sides[to].talk.opening().epoch != before {
                    self.sides[to].said = 0;
                    self.reopen(to);
                }
                let receipt = self.sides[to].talk.receipt();
                self.ways[from].receipts.push_back(receipt);
            }
            Parcel::Frame(frame) => {
                let cursor = cursor.as_mut().expect("an opening comes first");
                let epoch = cursor.epoch;
                let side = &mut self.sides[to];
                if side.talk.hear(cursor, frame.len()) {
                    let text = u64::from_le_bytes(frame.try_into().unwrap());
                    assert_eq!(text >> 32, epoch, "C-3: nothing of an older epoch");
                    assert_eq!(text as u32 as usize, side.took.len(), "C-1: once and in order");
                    side.took.push(text);
                }
                if side.talk.owes_receipt() {
                    let receipt = side.talk.receipt();
                    self.ways[from].receipts.push_back(receipt);
                }
            }
        }
    }

    fn receive(&mut self, from: usize) {
        if let Some(receipt) = self.ways[from].receipts.pop_front() {
            let before = self.sides[from].talk.opening().epoch;
            if self.sides[from].talk.on_receipt(receipt) == Fate::Ended {
                self.over(from);
            } else if self.sides[from].talk.opening().epoch != before {
                self.sides[from].said = 0;
                self.reopen(from);
            }
        }
    }

    /// Everything is heard, over new connections.
    fn settle(&mut self) {
        for _ in 0..4 {
            for from in 0..2 {
                self.connect(from);
                let all = self.ways[from].connections.len();
                for which in 0..all {
                    for _ in 0..1000 {
                        self.deliver(from, which);
                    }
                }
                while !self.ways[from].receipts.is_empty() {
                    self.receive(from);
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Say(usize),
    Connect(usize),
    Deliver(usize, usize),
    Receive(usize),
    /// What is on its way over all connections of a side is lost.
    Cut(usize),
    LoseReceipts(usize),
    End(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let side = 0..2_usize;
    prop_oneof![
        6 => side.clone().prop_map(Act::Say),
        2 => side.clone().prop_map(Act::Connect),
        12 => (side.clone(), 0..8_usize).prop_map(|(from, which)| Act::Deliver(from, which)),
        4 => side.clone().prop_map(Act::Receive),
        1 => side.clone().prop_map(Act::Cut),
        1 => side.clone().prop_map(Act::LoseReceipts),
        1 => side.prop_map(Act::End),
    ]
}

proptest! {
    /// C-1, C-2 and C-3, whatever happens to connections.
    #[test]
    fn what_is_said_is_heard_once_and_in_order(acts in prop::collection::vec(act(), 1..300)) {
        let mut pair = Pair::default();
        for act in acts {
            match act {
                Act::Say(from) => pair.say(from),
                Act::Connect(from) => pair.connect(from),
                Act::Deliver(from, which) => pair.deliver(from, which),
                Act::Receive(from) => pair.receive(from),
                Act::Cut(from) => pair.ways[from].connections.clear(),
                Act::LoseReceipts(from) => pair.ways[from].receipts.clear(),
                Act::End(from) => {
                    pair.sides[from].talk.end();
                    pair.over(from);
                }
            }
        }
        pair.settle();
        let [a, b] = &pair.sides;
        prop_assert_eq!(a.talk.opening().epoch, b.talk.opening().epoch, "C-3");
        prop_assert_eq!(a.said as usize, b.took.len(), "C-2");
        prop_assert_eq!(b.said as usize, a.took.len(), "C-2");
        prop_assert_eq!(a.talk.kept().count() + b.talk.kept().count(), 0, "all is acknowledged");
    }
}

/// C-4.
#[test]
fn what_has_come_is_acknowledged_in_time() {
    let (mut said, mut heard) = (Conversation::default(), Conversation::default());
    let mut cursor = said.opening();
    for _ in 0..10 * MOST_FRAMES {
        said.say(&[b"some", b"thing"]);
        assert!(heard.hear(&mut cursor, 9));
        if heard.owes_receipt() {
            assert_eq!(said.on_receipt(heard.receipt()), Fate::GoesOn);
        }
        assert!(said.kept().count() as u64 <= MOST_FRAMES);
    }
    assert!(heard.hear(&mut cursor, MOST_BYTES) && heard.owes_receipt());
}

/// C-3: ends that cross are one end.
#[test]
fn both_sides_end_it_at_once() {
    let (mut a, mut b) = (Conversation::default(), Conversation::default());
    a.say(&[b"lost"]);
    b.say(&[b"lost"]);
    a.end();
    b.end();
    assert_eq!(a.on_opening(b.opening()), Fate::GoesOn);
    assert_eq!(b.on_opening(a.opening()), Fate::GoesOn);
    assert_eq!((a.kept().count(), b.kept().count()), (0, 0));
}
