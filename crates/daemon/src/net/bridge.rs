//! Channels whose other end is a process of another node: this service is the
//! other end here, reads what its own processes write and passes it on, and writes
//! what comes for them.
//!
//! A task that passes is claimed on this side: from then on its owner must ask for
//! it back. On the side of the worker it gets a number of that ring, by which it is
//! taken back while the worker has not begun it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use oxiray_channel::layout::BELL_BITS;
use oxiray_channel::{Bell, Bells, Link};
use oxiray_ids::ProcessId;
use oxiray_sys::eventfd;
use oxiray_wire::frame::{Frame, LAST_PIECE, PIECE, renumber_task, take_back_number, task_number};

/// Tasks whose numbers are remembered: more than can be in flight.
const MOST_NUMBERS: usize = 1024;

/// Both ends: the local and the foreign process.
pub(crate) type Pair = (ProcessId, ProcessId);

/// Whether a large frame, cut in pieces, is under way.
#[derive(Default)]
struct Pieces {
    mid_frame: bool,
    dropping: bool,
}

struct Channel {
    link: Link,
    bit: u32,
    /// Frames that found no room in the ring.
    waiting: VecDeque<Vec<u8>>,
    outgoing: Pieces,
    incoming: Pieces,
    /// Numbers of tasks: their owner's, and this ring's.
    numbers: VecDeque<(u64, u64)>,
}

/// All channels of this node with processes of others.
pub(crate) struct Bridge {
    bells: Bells,
    own: Bell,
    channels: HashMap<Pair, Channel>,
    by_bit: HashMap<u32, Vec<Pair>>,
    /// What processes ring when the event loop sleeps.
    waker: OwnedFd,
    /// Written to, not yet woken: many frames share a wake-up.
    unwoken: Vec<Pair>,
}

/// A frame to pass on: from a local to a foreign process.
pub(crate) type Outgoing = (ProcessId, ProcessId, Vec<u8>);

impl Bridge {
    /// The bridge at `place` among the bells.
    pub(crate) fn new(bells: &OwnedFd, place: u32) -> io::Result<Self> {
        let bells = Bells::map(bells)?;
        let own = bells.bell(place)?;
        own.reset();
        let (channels, by_bit) = (HashMap::new(), HashMap::new());
        Ok(Self { bells, own, channels, by_bit, waker: eventfd::new()?, unwoken: Vec::new() })
    }

    /// What processes ring when they have written something and the loop sleeps.
    pub(crate) fn waker(&self) -> &OwnedFd {
        &self.waker
    }

    /// The loop is about to sleep; whether there is something to read instead.
    pub(crate) fn begin_sleep(&self) -> bool {
        self.own.begin_sleep()
    }

    /// The loop is awake.
    pub(crate) fn end_sleep(&self) {
        self.own.end_sleep();
    }

    /// Whether processes have written something.
    pub(crate) fn has_news(&self) -> bool {
        self.own.has_news()
    }

    /// A new channel: our end of it.
    pub(crate) fn open(
        &mut self,
        pair: Pair,
        file: impl AsFd,
        side: usize,
        bit: u32,
        peer: (u32, u32),
    ) -> io::Result<()> {
        let (peer_bell, peer_bit) = peer;
        let link = Link::map(file, side, self.bells.bell(peer_bell)?, peer_bit)?;
        // There may be more channels than bits: what a process rings is the rest.
        let bit = bit % BELL_BITS as u32;
        self.by_bit.entry(bit).or_default().push(pair);
        self.channels.insert(
            pair,
            Channel {
                link,
                bit,
                waiting: VecDeque::new(),
                outgoing: Pieces::default(),
                incoming: Pieces::default(),
                numbers: VecDeque::new(),
            },
        );
        Ok(())
    }

    pub(crate) fn has(&self, pair: Pair) -> bool {
        self.channels.contains_key(&pair)
    }

    /// What our processes have written since the last time.
    pub(crate) fn read(&mut self, out: &mut Vec<Outgoing>) {
        eventfd::quiet(&self.waker);
        let mut bits = Vec::new();
        self.own.take(|bit| bits.push(bit));
        for bit in bits {
            for pair in self.by_bit.get(&bit).cloned().unwrap_or_default() {
                if let Some(channel) = self.channels.get_mut(&pair) {
                    channel.read(pair, out);
                    if channel.write_waiting() {
                        self.unwoken.push(pair);
                    }
                }
            }
        }
    }

    /// Writes what came from another node for a process of ours. What is to be said
    /// in return goes to `out`.
    pub(crate) fn write(&mut self, pair: Pair, frame: Vec<u8>, out: &mut Vec<Outgoing>) {
        if let Some(channel) = self.channels.get_mut(&pair)
            && channel.write(pair, frame, out)
            && self.unwoken.last() != Some(&pair)
        {
            self.unwoken.push(pair);
        }
    }

    /// Wakes the processes that were written to.
    pub(crate) fn wake(&mut self) {
        for pair in self.unwoken.drain(..) {
            if let Some(channel) = self.channels.get(&pair) {
                channel.link.wake();
            }
        }
    }

    /// Reads what is left in a channel and forgets it; but while something waits for room
    /// in its ring, later: `false`.
    pub(crate) fn close(&mut self, pair: Pair, out: &mut Vec<Outgoing>) -> bool {
        let waits = self.channels.get(&pair).is_some_and(|channel| !channel.waiting.is_empty());
        if waits {
            return false;
        }
        self.forget(pair, out);
        true
    }

    /// Forgets a channel, whatever waits in it.
    pub(crate) fn forget(&mut self, pair: Pair, out: &mut Vec<Outgoing>) {
        let Some(mut channel) = self.channels.remove(&pair) else {
            return;
        };
        if let Some(pairs) = self.by_bit.get_mut(&channel.bit) {
            pairs.retain(|other| *other != pair);
        }
        channel.read(pair, out);
        // What the worker never began, its owner need not count as begun.
        for (theirs, ours) in std::mem::take(&mut channel.numbers) {
            if channel.link.take_back(ours) {
                out.push((pair.0, pair.1, encoded(&Frame::TakenBack(theirs))));
            }
        }
    }
}

impl Pieces {
    /// Takes in the next part of a frame: where its frame begins in it, if it does.
    fn next(&mut self, bytes: &[u8]) -> Option<usize> {
        let begins = !self.mid_frame;
        let (at, mid) = match bytes.first() {
            Some(&PIECE) => (1, true),
            Some(&LAST_PIECE) => (1, false),
            _ => (0, false),
        };
        self.mid_frame = mid;
        if begins {
            self.dropping = false;
        }
        begins.then_some(at)
    }
}

impl Channel {
    fn read(&mut self, pair: Pair, out: &mut Vec<Outgoing>) {
        let mut frames = Vec::new();
        if self.link.drain(|bytes| frames.push(bytes.to_vec())).is_err() {
            return; // No correct process does this; its end is near.
        }
        for frame in frames {
            if let Some(at) = self.outgoing.next(&frame) {
                let number = task_number(&frame[at..]).filter(|number| *number != 0);
                // Its owner may have taken it back.
                self.outgoing.dropping = number.is_some_and(|number| !self.link.take(number));
            }
            if !self.outgoing.dropping {
                out.push((pair.0, pair.1, frame));
            }
        }
    }

    /// Whether something was written.
    fn write(&mut self, pair: Pair, mut frame: Vec<u8>, out: &mut Vec<Outgoing>) -> bool {
        if let Some(number) = take_back_number(&frame) {
            let at = self.numbers.iter().position(|(theirs, _)| *theirs == number);
            if let Some((_, ours)) = at.and_then(|at| self.numbers.remove(at))
                && self.link.take_back(ours)
            {
                out.push((pair.0, pair.1, encoded(&Frame::TakenBack(number))));
            }
            return false;
        }
        if let Some(at) = self.incoming.next(&frame)
            && let Some(number) = task_number(&frame[at..]).filter(|number| *number != 0)
        {
            let ours = self.link.offer();
            renumber_task(&mut frame[at..], ours);
            if self.numbers.len() >= MOST_NUMBERS {
                self.numbers.pop_front();
            }
            self.numbers.push_back((number, ours));
        }
        self.waiting.push_back(frame);
        self.write_waiting()
    }

    /// Whether something was written.
    fn write_waiting(&mut self) -> bool {
        let mut wrote = false;
        while let Some(frame) = self.waiting.front() {
            if self.link.push(&[frame]).is_err() {
                break;
            }
            self.waiting.pop_front();
            wrote = true;
        }
        wrote
    }
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use oxiray_channel::{BELLS_BYTES, CHANNEL_BYTES};
    use oxiray_sys::memory::memory_file;

    use super::*;

    /// A node with many workers elsewhere has more channels than its bell has bits.
    #[test]
    fn what_is_written_is_read_however_many_channels_there_are() {
        let bells = memory_file("bells", BELLS_BYTES).unwrap();
        let mut bridge = Bridge::new(&bells, 0).unwrap();
        let all = Bells::map(&bells).unwrap();
        for index in [0, BELL_BITS as u32 - 1, BELL_BITS as u32, 5000] {
            let pair = (ProcessId(1), ProcessId((2 << 32) | u64::from(index)));
            let file = memory_file("channel", CHANNEL_BYTES).unwrap();
            bridge.open(pair, &file, 1, index, (1, 0)).unwrap();
            let mut theirs = Link::map(&file, 0, all.bell(0).unwrap(), index).unwrap();
            let frame = encoded(&Frame::TakenBack(7));
            theirs.push(&[&frame]).unwrap();
            let mut read = Vec::new();
            bridge.read(&mut read);
            assert_eq!(read, [(pair.0, pair.1, frame)], "at {index}");
        }
    }
}
