//! Two ends of one channel, in two threads of this process, on the machine's own
//! atomics and futex.

use std::thread;
use std::time::Duration;

use oxiray_sys::memory::memory_file;

use super::*;
use crate::bell::Bells;
use crate::layout::{BELLS_BYTES, CLAIMS};

fn pair() -> ((Link, Bell), (Link, Bell)) {
    let bells = Bells::map(memory_file("bells", BELLS_BYTES).unwrap()).unwrap();
    let file = memory_file("channel", CHANNEL_BYTES).unwrap();
    let bell = |place| bells.bell(place).unwrap();
    let left = Link::map(&file, 0, bell(1), 7).unwrap();
    let right = Link::map(&file, 1, bell(0), 1023).unwrap();
    ((left, bell(0)), (right, bell(1)))
}

/// Sends `count` frames one way, more than the ring holds, and sleeps when it is full.
fn send(link: &mut Link, bell: &Bell, count: u32) {
    let mut payload = vec![0; 10_000];
    for serial in 0..count {
        payload[..4].copy_from_slice(&serial.to_le_bytes());
        let len = 4 + serial as usize * 97 % 9_000;
        loop {
            let ticket = bell.ticket();
            bell.take(|_| ());
            if link.push(&[&payload[..4], &payload[4..len]]).is_ok() {
                break;
            }
            link.wake();
            bell.sleep(ticket, Some(Duration::from_secs(10)));
        }
        if serial % 3 == 0 {
            link.wake();
        }
    }
    link.wake();
}

#[test]
fn a_flood_arrives_whole_and_in_order_and_nobody_oversleeps() {
    const COUNT: u32 = 20_000;
    let ((mut left, left_bell), (mut right, right_bell)) = pair();
    let sender = thread::spawn(move || send(&mut left, &left_bell, COUNT));
    let mut next = 0;
    while next < COUNT {
        let ticket = right_bell.ticket();
        right_bell.take(|bit| assert_eq!(bit, 7));
        let before = next;
        right
            .drain(|frame| {
                assert_eq!(frame[..4], next.to_le_bytes(), "R-3");
                assert_eq!(frame.len(), 4.max(4 + next as usize * 97 % 9_000), "R-3");
                next += 1;
            })
            .unwrap();
        if next == before {
            let woken = right_bell.sleep(ticket, Some(Duration::from_secs(10)));
            assert_ne!(woken, oxiray_sys::futex::Woken::TimedOut, "B-1");
        }
    }
    sender.join().unwrap();
    assert!(!right.has_frames());
}

#[test]
fn each_task_is_taken_once_in_either_direction() {
    let ((mut left, _), (mut right, _)) = pair();
    for _ in 0..2 * CLAIMS {
        let (mine, theirs) = (left.offer(), right.offer());
        assert!(right.take(mine) && !left.take_back(mine), "C-1");
        assert!(right.take_back(theirs) && !left.take(theirs), "C-1");
    }
    let old = left.offer();
    let numbers: Vec<u64> = (0..CLAIMS).map(|_| left.offer()).collect();
    assert!(right.take(numbers[0]));
    assert!(!right.take(old) && !left.take_back(old), "C-2");
}

#[test]
fn a_reset_bell_has_no_news() {
    let (_, (_, bell)) = pair();
    bell.mark(1);
    bell.mark(1023);
    assert!(bell.has_news());
    bell.reset();
    assert!(!bell.has_news());
    assert!(!bell.wake(), "nobody sleeps");
}
