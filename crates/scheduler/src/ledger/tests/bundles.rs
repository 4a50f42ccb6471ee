//! Bundles: places of their own in the ledger.

use oxiray_wire::control;

use super::*;

const GROUP: GroupId = GroupId([7; 18]);

fn within(index: Option<u32>, amounts: &[(&str, u64)]) -> Shape {
    let strategy = control::Strategy {
        group: GROUP.0.to_vec(),
        bundle: index,
        ..control::Strategy::default()
    };
    Shape { strategy: Some(strategy), ..shape(amounts) }
}

fn reserve(ledger: &mut Ledger, index: u32, amounts: &[(&str, u64)]) -> bool {
    ledger.reserve((GROUP, index), &shape(amounts).resources)
}

#[test]
fn a_bundle_has_a_balance_of_its_own() {
    // L-1, L-5, L-6.
    let mut ledger = ledger(&[("CPU", 4 * UNIT)]);
    assert!(reserve(&mut ledger, 0, &[("CPU", 2 * UNIT)]));
    assert!(!reserve(&mut ledger, 1, &[("CPU", 3 * UNIT)]), "L-5");
    assert_eq!(available(&ledger, "CPU"), 2 * UNIT);
    let one = within(None, &[("CPU", UNIT)]);
    assert!(ledger.acquire(&one).is_none(), "it is not committed");
    ledger.commit(GROUP);
    let (a, b) = (ledger.acquire(&one).unwrap(), ledger.acquire(&one).unwrap());
    assert!(ledger.acquire(&one).is_none(), "the bundle is full, whatever the node has");
    assert_eq!(available(&ledger, "CPU"), 2 * UNIT, "it was the bundle's");
    assert!(ledger.stands_in_the_way(&a, &one));
    assert!(!ledger.stands_in_the_way(&a, &shape(&[("CPU", 3 * UNIT)])));
    ledger.validate([&a, &b]);
    ledger.release(a);
    ledger.release(b);
    assert!(ledger.release_bundle((GROUP, 0)) && !ledger.release_bundle((GROUP, 0)));
    assert_eq!(available(&ledger, "CPU"), 4 * UNIT);
    assert!(!ledger.can_ever_fit(&one));
    ledger.validate([]);
}

#[test]
fn cpus_are_lent_within_a_bundle() {
    let mut ledger = ledger(&[("CPU", 2 * UNIT)]);
    assert!(reserve(&mut ledger, 0, &[("CPU", UNIT)]));
    ledger.commit(GROUP);
    let one = within(Some(0), &[("CPU", UNIT)]);
    let mut parent = ledger.acquire(&one).unwrap();
    ledger.lend_cpus(&mut parent);
    assert_eq!(available(&ledger, "CPU"), UNIT, "not to others");
    let child = ledger.acquire(&one).unwrap();
    ledger.take_back_cpus(&mut parent);
    ledger.validate([&parent, &child]);
    ledger.release(child);
    assert!(ledger.acquire(&one).is_none(), "the debt was paid first");
    ledger.release(parent);
    assert!(ledger.release_bundle((GROUP, 0)));
}

#[test]
fn devices_of_a_bundle_are_its_own() {
    // L-3, L-4.
    let mut ledger = ledger(&[("GPU", 4 * UNIT)]);
    let first = ledger.acquire(&shape(&[("GPU", UNIT)])).unwrap();
    assert!(reserve(&mut ledger, 0, &[("GPU", 2 * UNIT)]));
    assert!(reserve(&mut ledger, 1, &[("GPU", UNIT / 2)]));
    ledger.commit(GROUP);
    let both = ledger.acquire(&within(Some(0), &[("GPU", 2 * UNIT)])).unwrap();
    assert_eq!(both.devices()[0].ids, [1, 2]);
    let half = ledger.acquire(&within(Some(1), &[("GPU", UNIT / 2)])).unwrap();
    assert_eq!(half.devices()[0].ids, [3]);
    assert!(ledger.acquire(&within(None, &[("GPU", UNIT / 2)])).is_none());
    assert!(!ledger.can_ever_fit(&within(Some(1), &[("GPU", UNIT)])));
    ledger.validate([&first, &both, &half]);
    for allocation in [first, both, half] {
        ledger.release(allocation);
    }
    ledger.validate([]);
}

#[test]
fn any_bundle_is_the_first_with_room_and_a_named_one_is_that() {
    let mut ledger = ledger(&[("CPU", 3 * UNIT)]);
    for index in 0..3 {
        assert!(reserve(&mut ledger, index, &[("CPU", UNIT)]));
    }
    ledger.commit(GROUP);
    let third = ledger.acquire(&within(Some(2), &[("CPU", UNIT)])).unwrap();
    let any = within(None, &[("CPU", UNIT)]);
    let (a, b) = (ledger.acquire(&any).unwrap(), ledger.acquire(&any).unwrap());
    let of = |allocation: &Allocation| allocation.bundle().unwrap().1;
    assert_eq!([of(&a), of(&b), of(&third)], [0, 1, 2]);
    assert!(!ledger.fits(&any) && ledger.can_ever_fit(&any));
    for allocation in [a, b, third] {
        ledger.release(allocation);
    }
}
