//! A way that works, breaks, leads through others, and heals.

use super::*;

const SECOND: u64 = 1_000 * MILLISECOND;
const HEAD: u32 = 1;
const OTHERS: [u32; 3] = [HEAD, 4, 5];

/// A way that works, straight.
fn straight() -> Ways {
    let mut ways = Ways::default();
    assert_eq!(ways.on_said(0), Some(Step::Take(Way::Straight)));
    assert_eq!(ways.on_said(0), None, "one is enough");
    assert!(!ways.on_heard(0), "it never was away");
    ways
}

/// One through the head, after the straight one went silent at 10 s.
fn detour() -> Ways {
    let mut ways = straight();
    let step = ways.on_failed(true, &OTHERS, 10 * SECOND);
    assert_eq!(step, Some(Step::Take(Way::Through(HEAD))));
    assert!(ways.on_heard(10 * SECOND), "it is back");
    ways
}

/// W-1.
#[test]
fn a_way_that_goes_silent_is_followed_by_one_through_another_node() {
    let mut ways = straight();
    let step = ways.on_failed(true, &OTHERS, 10 * SECOND);
    assert_eq!(step, Some(Step::Take(Way::Through(HEAD))));
    assert_eq!(ways.away_since(), Some(10 * SECOND));
    // Nor does that one lead there.
    assert_eq!(ways.next_wakeup(), Some(10 * SECOND + ATTEMPT));
    assert_eq!(ways.on_time(&OTHERS, 10 * SECOND + ATTEMPT), [Step::Leave]);
    let Some(Step::Take(Way::Through(next))) = ways.on_failed(true, &OTHERS, 14 * SECOND) else {
        panic!("another node is tried")
    };
    assert!(OTHERS[1..].contains(&next));
    assert!(ways.on_heard(15 * SECOND), "there is a way again");
    assert_eq!((ways.away_since(), ways.working()), (None, Some(Way::Through(next))));
}

/// W-1: whoever ended it may be there.
#[test]
fn a_connection_that_was_ended_is_made_again() {
    let mut ways = straight();
    assert_eq!(ways.on_failed(false, &OTHERS, SECOND), Some(Step::Take(Way::Straight)));
    assert!(ways.on_heard(SECOND));
    assert_eq!(ways.next_wakeup(), None, "a straight way costs nothing");
}

/// W-2.
#[test]
fn one_that_stands_still_in_between_is_left() {
    let mut ways = detour();
    assert_eq!(ways.on_time(&OTHERS, 11 * SECOND), [Step::Ask]);
    assert!(!ways.on_heard(11 * SECOND));
    assert!(ways.on_time(&OTHERS, 12 * SECOND).contains(&Step::Ask));
    assert_eq!(ways.on_time(&OTHERS, 11 * SECOND + ATTEMPT), [Step::Leave]);
    let step = ways.on_failed(true, &OTHERS, 14 * SECOND);
    assert!(matches!(step, Some(Step::Take(Way::Through(node))) if node != HEAD), "{step:?}");
}

/// W-3.
#[test]
fn the_straight_way_is_taken_when_it_works_again() {
    let mut ways = detour();
    assert_eq!(ways.on_time(&OTHERS, 12 * SECOND), [Step::Ask, Step::Try]);
    ways.on_heard(12 * SECOND);
    assert!(!ways.on_time(&OTHERS, 13 * SECOND).contains(&Step::Try), "one at a time");
    ways.on_heard(13 * SECOND);
    assert!(ways.on_time(&OTHERS, 12 * SECOND + ATTEMPT).contains(&Step::LeaveTrial));
    ways.on_trial_failed(15 * SECOND);
    ways.on_heard(16 * SECOND);
    assert!(ways.on_time(&OTHERS, 17 * SECOND).contains(&Step::Try), "again");
    assert!(!ways.on_trial_heard(17 * SECOND), "it was not away");
    assert_eq!((ways.working(), ways.next_wakeup()), (Some(Way::Straight), None));
}

/// W-4.
#[test]
fn only_the_machine_itself_says_that_nobody_is_there() {
    let mut ways = straight();
    assert_eq!(ways.on_failed(false, &[HEAD], SECOND), Some(Step::Take(Way::Straight)));
    assert_eq!(ways.on_failed(false, &[HEAD], SECOND), Some(Step::Take(Way::Through(HEAD))));
    assert_eq!(ways.on_failed(false, &[HEAD], SECOND), Some(Step::Nobody));
    // Somebody may be there again.
    assert_eq!(ways.next_wakeup(), Some(SECOND + REST));

    let mut silent = straight();
    let mut now = SECOND;
    let mut step = silent.on_failed(true, &[HEAD], now);
    for _ in 0..20 {
        assert_ne!(step, Some(Step::Nobody), "W-4: silence is no answer");
        now = silent.next_wakeup().expect("it is looked for");
        step = match silent.on_time(&[HEAD], now)[..] {
            [Step::Leave] => silent.on_failed(true, &[HEAD], now),
            [step] => Some(step),
            ref steps => panic!("{steps:?}"),
        };
    }
    assert_eq!(silent.away_since(), Some(SECOND));
}

#[test]
fn without_others_the_straight_way_is_tried_again_and_again() {
    let mut ways = straight();
    assert_eq!(ways.on_failed(true, &[], SECOND), Some(Step::Take(Way::Straight)));
    assert_eq!(ways.on_failed(true, &[], 3 * SECOND), None);
    assert_eq!(ways.on_time(&[], 3 * SECOND + REST), [Step::Take(Way::Straight)]);
    assert!(ways.on_heard(4 * SECOND));
}
