//! The invariants D-1 to D-6, after any sequence of events.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Event {
    Admitted,
    /// One of those admitted so far.
    Authenticated(prop::sample::Index),
    Gone(prop::sample::Index),
    Expired,
    Pass(u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        8 => Just(Event::Admitted),
        2 => any::<prop::sample::Index>().prop_map(Event::Authenticated),
        1 => any::<prop::sample::Index>().prop_map(Event::Gone),
        1 => Just(Event::Expired),
        2 => (0..PATIENCE_NS).prop_map(Event::Pass),
    ];
    prop::collection::vec(event, 0..400)
}

fn address(number: u32) -> IpAddr {
    Ipv4Addr::from(number).into()
}

proptest! {
    /// Exercises D-1 to D-4.
    #[test]
    fn strangers_are_bounded_in_number_and_time(events in events()) {
        let mut keeper = Doorkeeper::default();
        let mut now = 0;
        // By key: when it came, and whether it is still there.
        let mut model: Vec<(u64, bool)> = Vec::new();
        for event in events {
            match event {
                Event::Admitted => {
                    let oldest = model.iter().position(|entry| entry.1);
                    let full = model.iter().filter(|entry| entry.1).count() == MAX_STRANGERS;
                    let dropped = keeper.admitted(model.len(), address(1), now);
                    prop_assert_eq!(dropped, if full { oldest } else { None });
                    model.extend([(now, true)]);
                    if let Some(key) = dropped {
                        model[key].1 = false;
                    }
                }
                Event::Authenticated(index) if !model.is_empty() => {
                    let key = index.index(model.len());
                    keeper.authenticated(key);
                    model[key].1 = false;
                }
                Event::Gone(index) if !model.is_empty() => {
                    let key = index.index(model.len());
                    keeper.gone(key, "test", now);
                    model[key].1 = false;
                }
                Event::Expired => {
                    let wakeup = keeper.next_wakeup();
                    let expired = keeper.expired(now);
                    prop_assert_eq!(!expired.is_empty(), wakeup.is_some_and(|at| at <= now));
                    for key in expired {
                        prop_assert!(model[key].1, "it left before");
                        prop_assert!(model[key].0 + PATIENCE_NS <= now);
                        model[key].1 = false;
                    }
                    let late = |entry: &&(u64, bool)| entry.1 && entry.0 + PATIENCE_NS <= now;
                    prop_assert!(model.iter().find(late).is_none());
                }
                Event::Pass(time) => now += time,
                _ => {}
            }
            let here: Vec<_> = model.iter().filter(|entry| entry.1).collect();
            prop_assert!(here.len() <= MAX_STRANGERS);
            prop_assert_eq!(keeper.strangers.len(), here.len());
            let oldest = here.iter().map(|entry| entry.0 + PATIENCE_NS).min();
            prop_assert_eq!(keeper.next_wakeup(), oldest);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Exercises D-5 and D-6.
    #[test]
    fn log_lines_are_bounded(
        refusals in prop::collection::vec((0u32..3000, 0..MINUTE_NS / 1000), 0..6000),
    ) {
        let mut lines = Lines::default();
        let mut logged: VecDeque<(u64, u32)> = VecDeque::new();
        let mut now = 0;
        for (source, time) in refusals {
            now += time;
            while logged.pop_front_if(|entry| entry.0 + MINUTE_NS <= now).is_some() {}
            if lines.may_log(address(source), now) {
                prop_assert!(logged.iter().all(|entry| entry.1 != source));
                logged.push_back((now, source));
            }
            prop_assert!(logged.len() <= LINES_PER_MINUTE);
            prop_assert!(lines.last.len() <= LINES_PER_MINUTE);
        }
    }
}

/// Exercises D-5: the first refusal is always told, and the next one a minute later.
#[test]
fn a_source_is_told_again_after_a_minute() {
    let mut lines = Lines::default();
    assert!(lines.may_log(address(1), 0));
    assert!(!lines.may_log(address(1), MINUTE_NS - 1));
    assert!(lines.may_log(address(2), MINUTE_NS - 1));
    assert!(lines.may_log(address(1), MINUTE_NS));
}

/// Exercises D-1.
#[test]
fn a_flood_from_one_address_throws_out_its_own() {
    let mut keeper = Doorkeeper::default();
    assert_eq!(keeper.admitted(0, address(1), 0), None);
    for key in 1..MAX_STRANGERS {
        assert_eq!(keeper.admitted(key, address(2), 0), None);
    }
    for key in 0..1000 {
        let dropped = keeper.admitted(MAX_STRANGERS + key, address(2), 0);
        assert_eq!(dropped, Some(1 + key));
    }
}
