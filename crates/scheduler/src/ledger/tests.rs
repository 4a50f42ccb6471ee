//! Tests of the ledger; each names the invariants it exercises.

use oxiray_wire::control::UNIT;
use proptest::prelude::*;

use super::*;

fn shape(amounts: &[(&str, u64)]) -> Shape {
    let amount = |&(name, amount): &(&str, u64)| Amount { name: name.into(), amount };
    Shape { resources: amounts.iter().map(amount).collect(), ..Shape::default() }
}

fn ledger(amounts: &[(&str, u64)]) -> Ledger {
    Ledger::new(&shape(amounts).resources)
}

fn available(ledger: &Ledger, name: &str) -> u64 {
    let all = ledger.available();
    all.iter().find(|amount| amount.name == name).unwrap().amount
}

#[test]
fn taking_back_makes_debt_that_the_next_release_pays() {
    // L-1, L-2.
    let mut ledger = ledger(&[("CPU", UNIT)]);
    let one = shape(&[("CPU", UNIT)]);
    let mut parent = ledger.acquire(&one).unwrap();
    assert!(ledger.acquire(&one).is_none());
    ledger.lend_cpus(&mut parent);
    ledger.lend_cpus(&mut parent);
    let child = ledger.acquire(&one).unwrap();
    ledger.take_back_cpus(&mut parent);
    ledger.take_back_cpus(&mut parent);
    assert_eq!(available(&ledger, "CPU"), 0);
    ledger.release(child);
    assert_eq!(available(&ledger, "CPU"), 0, "the debt was paid first");
    ledger.release(parent);
    assert_eq!(available(&ledger, "CPU"), UNIT);
}

#[test]
fn whole_devices_are_exclusive_and_fractions_share() {
    // L-4.
    let mut ledger = ledger(&[("GPU", 2 * UNIT)]);
    let half = shape(&[("GPU", UNIT / 2)]);
    let whole = shape(&[("GPU", UNIT)]);
    let a = ledger.acquire(&half).unwrap();
    let b = ledger.acquire(&half).unwrap();
    assert_eq!(a.devices()[0].ids, b.devices()[0].ids, "fractions share a device");
    let c = ledger.acquire(&whole).unwrap();
    assert_ne!(a.devices()[0].ids, c.devices()[0].ids);
    ledger.release(b);
    assert!(ledger.acquire(&whole).is_none(), "half a device is not a whole one");
    ledger.release(c);
    ledger.release(a);
    assert_eq!(ledger.acquire(&shape(&[("GPU", 2 * UNIT)])).unwrap().devices()[0].ids, [0, 1]);
}

#[test]
fn what_is_not_there_can_never_fit() {
    let ledger = ledger(&[("CPU", 2 * UNIT)]);
    let needs = shape(&[("CPU", UNIT), ("GPU", UNIT), ("mine", UNIT / 2)]);
    assert!(!ledger.can_ever_fit(&needs));
    assert!(ledger.can_ever_fit(&shape(&[("CPU", 2 * UNIT), ("GPU", 0)])));
}

#[test]
fn shrinking_keeps_what_is_named() {
    let mut ledger = ledger(&[("CPU", 2 * UNIT), ("GPU", 2 * UNIT)]);
    let mut actor = ledger.acquire(&shape(&[("CPU", UNIT), ("GPU", 2 * UNIT)])).unwrap();
    ledger.shrink(&mut actor, &shape(&[("GPU", UNIT)]));
    assert_eq!(available(&ledger, "CPU"), 2 * UNIT);
    assert_eq!(available(&ledger, "GPU"), UNIT);
    assert_eq!(actor.devices()[0].ids, [0]);
    ledger.validate([&actor]);
    ledger.release(actor);
    ledger.validate([]);
}

#[derive(Clone, Debug)]
enum Step {
    Acquire(Vec<(usize, u64)>),
    Release(usize),
    Lend(usize),
    TakeBack(usize),
    Shrink(usize, Vec<(usize, u64)>),
}

const NAMES: [&str; 4] = ["CPU", "GPU", "mine", "unknown"];

fn needs() -> impl Strategy<Value = Vec<(usize, u64)>> {
    // Twenty-thousandths up to two and a half units, with names that repeat.
    prop::collection::vec((0..4usize, (0..11u64).prop_map(|n| n * UNIT / 4)), 0..4)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => needs().prop_map(Step::Acquire),
        2 => any::<usize>().prop_map(Step::Release),
        2 => any::<usize>().prop_map(Step::Lend),
        2 => any::<usize>().prop_map(Step::TakeBack),
        1 => (any::<usize>(), needs()).prop_map(|(pick, needs)| Step::Shrink(pick, needs)),
    ]
}

fn named(needs: &[(usize, u64)]) -> Shape {
    shape(&needs.iter().map(|&(name, amount)| (NAMES[name], amount)).collect::<Vec<_>>())
}

proptest! {
    /// Exercises L-1 to L-5 under any order of calls.
    #[test]
    fn nothing_is_lost_and_nothing_is_negative(steps in prop::collection::vec(step(), 0..120)) {
        let mut ledger = ledger(&[("CPU", 4 * UNIT), ("GPU", 5 * UNIT / 2), ("mine", UNIT)]);
        let mut live: Vec<Allocation> = Vec::new();
        for step in steps {
            let pick = |n: usize| if live.is_empty() { None } else { Some(n % live.len()) };
            match step {
                Step::Acquire(needs) => {
                    let before = ledger.available();
                    let needs = named(&needs);
                    match ledger.acquire(&needs) {
                        Some(allocation) => {
                            prop_assert!(ledger.can_ever_fit(&needs));
                            live.push(allocation);
                        }
                        None => prop_assert_eq!(before, ledger.available(), "L-5"),
                    }
                }
                Step::Release(n) => {
                    if let Some(index) = pick(n) {
                        ledger.release(live.swap_remove(index));
                    }
                }
                Step::Lend(n) => {
                    if let Some(index) = pick(n) {
                        ledger.lend_cpus(&mut live[index]);
                    }
                }
                Step::TakeBack(n) => {
                    if let Some(index) = pick(n) {
                        ledger.take_back_cpus(&mut live[index]);
                    }
                }
                Step::Shrink(n, needs) => {
                    if let Some(index) = pick(n) {
                        ledger.shrink(&mut live[index], &named(&needs));
                    }
                }
            }
            ledger.validate(&live);
        }
        for allocation in live {
            ledger.release(allocation);
        }
        prop_assert_eq!(ledger.available(), ledger.total());
        ledger.validate([]);
    }
}

mod bundles;
