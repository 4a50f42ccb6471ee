//! Tables of connections that speak with each other: L-1 to L-3.

mod support;

use std::cell::RefCell;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use oxiray_net::{Link, Links, Listener, Next, PATIENCE_NS, Reading, Security, Watch};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use support::{listener, new_cluster};

/// An event loop's poll set.
struct Poll(OwnedFd);

impl Poll {
    fn new() -> Self {
        Self(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap())
    }

    /// The slots that are ready, within a moment.
    fn ready(&self) -> Vec<usize> {
        let mut events = Vec::with_capacity(16);
        let moment = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        let _ = epoll::wait(&self.0, spare_capacity(&mut events), Some(&moment));
        events.iter().map(|event: &epoll::Event| event.data.u64() as usize).collect()
    }
}

impl Watch for Poll {
    fn add(&self, link: BorrowedFd<'_>, slot: usize) -> io::Result<()> {
        let data = epoll::EventData::new_u64(slot as u64);
        Ok(epoll::add(&self.0, link, data, epoll::EventFlags::IN)?)
    }
    fn want_write(&self, link: BorrowedFd<'_>, slot: usize, want: bool) {
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, want);
        epoll::modify(&self.0, link, epoll::EventData::new_u64(slot as u64), flags).unwrap();
    }
    fn remove(&self, link: BorrowedFd<'_>) {
        epoll::delete(&self.0, link).unwrap();
    }
}

/// A service: its table, and what came to it.
struct Service {
    poll: Poll,
    links: Links<&'static str>,
    frames: Vec<Vec<u8>>,
    over: Vec<(&'static str, String)>,
    taken: Vec<Link>,
}

impl Service {
    fn new(security: &Security) -> Self {
        let (frames, over, taken) = (Vec::new(), Vec::new(), Vec::new());
        Self { poll: Poll::new(), links: Links::new(security.clone()), frames, over, taken }
    }

    /// Accepts, reads and writes once. Who says `hand over` is handed over, who says `bad` is
    /// refused, and anybody else is known.
    fn turn(&mut self, listener: Option<&Listener>) {
        if let Some(listener) = listener {
            self.links.accept(listener, 0, &self.poll, |_| "stranger");
        }
        for slot in self.poll.ready() {
            let frames = RefCell::new(&mut self.frames);
            let reading = self.links.read(slot, 0, &self.poll, |whose, frame| {
                frames.borrow_mut().push(frame.to_vec());
                match frame {
                    b"hand over" => Next::HandOver,
                    b"bad" => Next::Refuse("it is bad".to_owned()),
                    _ if *whose == "stranger" => {
                        *whose = "known";
                        Next::Known
                    }
                    _ => Next::Go,
                }
            });
            match reading {
                Reading::Stays => {}
                Reading::HandedOver(link, _) => self.taken.push(link),
                Reading::Over(whose, over) => self.over.push((whose, over.why)),
            }
        }
        let over = self.links.flush(0, &self.poll).into_iter();
        self.over.extend(over.map(|(whose, over)| (whose, over.why)));
    }
}

/// Two services of a cluster; the second accepts.
struct Pair {
    one: Service,
    other: Service,
    listener: Listener,
}

impl Pair {
    fn new() -> Self {
        let security = new_cluster();
        let (one, other) = (Service::new(&security), Service::new(&security));
        Self { one, other, listener: listener() }
    }

    fn connect(&mut self, hello: &[u8]) -> usize {
        let at = self.listener.local_addr();
        self.one.links.connect(at, hello, "ours", &self.one.poll).unwrap()
    }

    fn until(&mut self, mut is_so: impl FnMut(&Self) -> bool) {
        for _ in 0..4000 {
            if is_so(self) {
                return;
            }
            self.one.turn(None);
            self.other.turn(Some(&self.listener));
        }
        panic!("it does not come to that");
    }
}

#[test]
fn frames_come_in_order_both_ways() {
    let mut pair = Pair::new();
    let slot = pair.connect(b"hello");
    for number in 0..100u32 {
        let body = vec![7; 100_000];
        pair.one.links.send(slot, &[&number.to_le_bytes(), &body]).unwrap();
    }
    pair.until(|pair| pair.other.frames.len() == 101);
    let numbers: Vec<u32> = pair.other.frames[1..]
        .iter()
        .map(|frame| u32::from_le_bytes(frame[..4].try_into().unwrap()))
        .collect();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>(), "L-2");
    let (theirs, whose) = pair.other.links.iter().next().unwrap();
    assert_eq!(*whose, "known");
    pair.other.links.send(theirs, &[b"answer"]).unwrap();
    pair.until(|pair| pair.one.frames == [b"answer"]);
}

#[test]
fn what_was_sent_before_the_end_comes_and_the_end_is_said_once() {
    let mut pair = Pair::new();
    let slot = pair.connect(b"hello");
    pair.one.links.send(slot, &[&vec![1; 3_000_000]]).unwrap();
    pair.one.links.close(slot);
    pair.until(|pair| !pair.other.over.is_empty());
    assert_eq!(pair.other.frames.last().map(Vec::len), Some(3_000_000), "L-2");
    assert_eq!(pair.other.over.len(), 1, "L-3");
    assert!(pair.one.over.is_empty(), "L-3: its owner ended it");
    assert_eq!((pair.one.links.iter().count(), pair.other.links.iter().count()), (0, 0));
}

#[test]
fn one_for_somebody_else_is_handed_over() {
    let mut pair = Pair::new();
    pair.connect(b"hand over");
    pair.until(|pair| !pair.other.taken.is_empty());
    assert_eq!(pair.other.links.iter().count(), 0);
    assert!(pair.other.taken[0].is_established());
    assert_eq!(pair.other.links.next_wakeup(), None, "it is no stranger");
}

#[test]
fn one_that_is_refused_is_over_at_both_ends() {
    let mut pair = Pair::new();
    pair.connect(b"bad");
    pair.until(|pair| !pair.one.over.is_empty());
    assert_eq!(pair.other.over, [("stranger", "it is bad".to_owned())]);
    assert_eq!(pair.one.over[0].0, "ours");
}

#[test]
fn strangers_have_their_time() {
    let mut pair = Pair::new();
    let silent = std::net::TcpStream::connect(pair.listener.local_addr()).unwrap();
    pair.until(|pair| pair.other.links.iter().count() == 1);
    assert_eq!(pair.other.links.next_wakeup(), Some(PATIENCE_NS), "L-1");
    pair.other.links.on_time(PATIENCE_NS, &pair.other.poll);
    assert_eq!(pair.other.links.iter().count(), 0, "L-1");
    assert!(pair.other.over.is_empty());
    drop(silent);
}

#[test]
fn a_slot_is_used_again_and_owes_nothing_to_who_had_it() {
    let mut pair = Pair::new();
    let slot = pair.connect(b"hello");
    pair.one.links.send(slot, &[b"never sent"]).unwrap();
    pair.one.links.end(slot, &pair.one.poll).unwrap();
    assert_eq!(pair.connect(b"second"), slot);
    pair.until(|pair| pair.other.frames.contains(&b"second".to_vec()));
    assert!(!pair.other.frames.contains(&b"never sent".to_vec()));
    assert!(pair.one.links.send(usize::MAX, &[b"to nobody"]).is_ok());
}
