//! Properties of one ring on memory of its own: for one thread.
//! Two threads are in `interleavings`.

use std::sync::Arc;

use oxiray_sys::memory::{Mapping, memory_file};

use super::Memory;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The memory of a small ring. Its data is mapped, so that a shared reference
/// can be written through; its bounds are checked as `link` checks them.
pub(crate) struct Bed {
    tail: AtomicU64,
    head: AtomicU64,
    starved: AtomicU32,
    /// Changed with the data: shuttle switches threads at atomics only.
    touched: AtomicU32,
    data: Mapping,
}

impl Bed {
    pub(crate) fn new(capacity: usize) -> Arc<Self> {
        let file = memory_file("ring-test", capacity).expect("a memory file");
        Arc::new(Self {
            tail: AtomicU64::new(0),
            head: AtomicU64::new(0),
            starved: AtomicU32::new(0),
            touched: AtomicU32::new(0),
            data: Mapping::new(file, capacity).expect("a mapping"),
        })
    }
}

impl Memory for Arc<Bed> {
    fn tail(&self) -> &AtomicU64 {
        &self.tail
    }

    fn head(&self) -> &AtomicU64 {
        &self.head
    }

    fn starved(&self) -> &AtomicU32 {
        &self.starved
    }

    fn write(&self, offset: usize, bytes: &[u8]) {
        self.touched.fetch_add(1, Ordering::SeqCst);
        self.data.write(offset, bytes);
    }

    fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        self.data.bytes(offset, len)
    }

    fn capacity(&self) -> usize {
        self.data.len()
    }
}

#[cfg(not(feature = "shuttle"))]
mod properties {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::ring::{Consumer, Corrupt, Full, PREFIX, Producer, SKIP};

    const CAPACITY: usize = 256;
    const LARGEST: usize = CAPACITY / 2 - 2 * PREFIX;

    #[derive(Clone, Debug)]
    enum Step {
        /// A frame of so many bytes, in two parts cut at a place.
        Push(usize, usize),
        Drain,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let size = prop_oneof![0..=LARGEST, 0..=16usize, Just(LARGEST)];
        let push = (size, 0..=LARGEST).prop_map(|(size, cut)| Step::Push(size, cut.min(size)));
        prop::collection::vec(prop_oneof![3 => push, 2 => Just(Step::Drain)], 1..200)
    }

    proptest! {
        #[test]
        fn frames_come_out_whole_once_and_in_order(steps in steps(), start in 0u64..1000) {
            let bed = Bed::new(CAPACITY);
            bed.tail.store(start * 8, Ordering::SeqCst);
            bed.head.store(start * 8, Ordering::SeqCst);
            let mut producer = Producer::new(bed.clone());
            let mut consumer = Consumer::new(bed.clone());
            let mut model: VecDeque<Vec<u8>> = VecDeque::new();
            let mut waits = false;
            for (serial, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(size, cut) => {
                        let frame = vec![serial as u8; size];
                        match producer.push(&[&frame[..cut], &frame[cut..]]) {
                            Ok(()) => model.push_back(frame),
                            Err(Full) => {
                                // An empty ring has room for any frame.
                                prop_assert!(!model.is_empty());
                                waits = true;
                            }
                        }
                    }
                    Step::Drain => {
                        prop_assert_eq!(consumer.has_frames(), !model.is_empty());
                        let mut seen = VecDeque::new();
                        let told = consumer.drain(|frame| seen.push_back(frame.to_vec())).unwrap();
                        // as far as one thread can tell.
                        prop_assert_eq!(&seen, &model);
                        // told once, and only if it waited.
                        prop_assert_eq!(told, waits);
                        model.clear();
                        waits = false;
                    }
                }
                //
                let (head, tail) = (bed.head.load(Ordering::SeqCst), bed.tail.load(Ordering::SeqCst));
                prop_assert!(head <= tail && tail <= head + CAPACITY as u64);
            }
        }

        #[test]
        fn any_bytes_at_all_are_survived(
            bytes in prop::collection::vec(any::<u8>(), CAPACITY),
            prefixes in prop::collection::vec((0..CAPACITY / 8, word()), 0..40),
            head in position(),
            tail in prop_oneof![position(), Just(u64::MAX)],
            ahead in prop::option::of(0..=CAPACITY as u64),
        ) {
            // R-5, from the first look on: even the positions are nonsense.
            let bed = Bed::new(CAPACITY);
            bed.write(0, &bytes);
            for (place, prefix) in prefixes {
                bed.write(place * 8, &prefix.to_le_bytes());
            }
            bed.head.store(head, Ordering::SeqCst);
            let tail = ahead.map_or(tail, |ahead| head.wrapping_add(ahead));
            bed.tail.store(tail, Ordering::SeqCst);
            let mut consumer = Consumer::new(bed.clone());
            let (mut frames, mut len) = (0, 0);
            let _ = consumer.drain(|frame| {
                frames += 1;
                len += frame.len();
            });
            prop_assert!(frames * PREFIX + len <= CAPACITY);
            // The producer reads the head, and nothing else that the other side writes.
            bed.tail.store(tail / 16 * 8, Ordering::SeqCst);
            bed.head.store(head, Ordering::SeqCst);
            let _ = Producer::new(bed.clone()).push(&[b"after"]);
        }

        #[test]
        fn what_is_spoilt_after_a_push_is_survived(
            sizes in prop::collection::vec(0..=LARGEST, 1..20),
            spoils in prop::collection::vec((0..CAPACITY / 8, word()), 1..10),
            tail in prop::option::of(position()),
            drains in 0..20usize,
        ) {
            // R-5, by a peer that was correct and then was not.
            let bed = Bed::new(CAPACITY);
            let mut producer = Producer::new(bed.clone());
            let mut consumer = Consumer::new(bed.clone());
            for (count, size) in sizes.into_iter().enumerate() {
                let _ = producer.push(&[&vec![7; size]]);
                if count == drains {
                    consumer.drain(|_| ()).unwrap();
                }
            }
            for (place, prefix) in spoils {
                bed.write(place * 8, &prefix.to_le_bytes());
            }
            if let Some(tail) = tail {
                bed.tail.store(tail, Ordering::SeqCst);
            }
            let mut len = 0;
            let drained = consumer.drain(|frame| len += frame.len());
            prop_assert!(len <= CAPACITY);
            if drained == Err(Corrupt) {
                // Nor does it recover by itself, or read on.
                let _ = consumer.drain(|_| ());
            }
        }
    }

    /// Lengths that are nearly right, and ones that are not.
    fn word() -> impl Strategy<Value = u32> {
        let near = CAPACITY as u32;
        prop_oneof![0..=near, 0..16u32, Just(SKIP), SKIP - 16..SKIP, any::<u32>()]
    }

    fn position() -> impl Strategy<Value = u64> {
        let near = 0..4 * CAPACITY as u64;
        prop_oneof![near.clone(), near.prop_map(|back| u64::MAX - back), any::<u64>()]
    }
}
