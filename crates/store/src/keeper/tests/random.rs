//! A node whose processes, disk and messages do anything in any order: T-1 to
//! T-4, C-1 to C-3 and K-1 to K-5, after every step and when all is over.

use proptest::prelude::*;

use super::SECOND;
use super::world::World;

#[derive(Clone, Debug)]
enum Step {
    Start,
    Kill(u32, u32),
    End(u32, u32),
    Confirm(u32),
    /// Size in 256ths of the arena, and the bytes beyond that.
    Make(u32, u8, u16, Option<u32>),
    Seal(u32, u32),
    ReadAnswer(u32),
    Free(u32),
    Look(u32, u32),
    LookAway(u32, u32),
    Withdraw(u32, u32),
    Lease(u32),
    Deliver(u32, u32),
    Hear(u32, u32),
    /// A job, and what of it fails.
    Disk(u32, u32),
    Tick(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![8 => 0..1u8, 6 => 0..60u8, 2 => 60..130u8, 1 => 250..=255u8];
    let owner = prop_oneof![2 => Just(None), 1 => (0..8u32).prop_map(Some)];
    let fails = prop_oneof![4 => Just(0), 1 => 1..4u32];
    let some = || 0..1000u32;
    prop_oneof![
        2 => Just(Step::Start),
        1 => (some(), some()).prop_map(|(who, arrives)| Step::Kill(who, arrives)),
        2 => (some(), any::<u32>()).prop_map(|(who, says)| Step::End(who, says)),
        1 => some().prop_map(Step::Confirm),
        12 => (some(), size, 0..3000u16, owner)
            .prop_map(|(who, size, more, owner)| Step::Make(who, size, more, owner)),
        12 => (some(), some()).prop_map(|(who, which)| Step::Seal(who, which)),
        4 => some().prop_map(Step::ReadAnswer),
        3 => some().prop_map(Step::Free),
        8 => (some(), some()).prop_map(|(who, which)| Step::Look(who, which)),
        8 => (some(), some()).prop_map(|(who, which)| Step::LookAway(who, which)),
        1 => (some(), some()).prop_map(|(who, which)| Step::Withdraw(who, which)),
        2 => some().prop_map(Step::Lease),
        12 => (some(), 1..4u32).prop_map(|(who, count)| Step::Deliver(who, count)),
        12 => (some(), 1..4u32).prop_map(|(who, count)| Step::Hear(who, count)),
        6 => (some(), fails).prop_map(|(which, fails)| Step::Disk(which, fails)),
        3 => prop_oneof![0..50_000_000u64, Just(SECOND)].prop_map(Step::Tick),
    ]
}

fn take(world: &mut World, step: Step) {
    match step {
        Step::Start => world.start(),
        Step::Kill(who, arrives) => world.kill(who, arrives),
        Step::End(who, says) => world.end(who, says),
        Step::Confirm(who) => world.confirm(who),
        Step::Make(who, part, more, owner) => {
            let size = world.keeper.usage().size / 256 * u64::from(part) + u64::from(more);
            world.make(who, size, owner);
        }
        Step::Seal(who, which) => world.seal(who, which),
        Step::ReadAnswer(which) => world.read_answer(which),
        Step::Free(which) => world.free(which),
        Step::Look(who, which) => world.look(who, which),
        Step::LookAway(who, which) => world.look_away(who, which),
        Step::Withdraw(who, which) => world.withdraw(who, which),
        Step::Lease(who) => world.lease(who),
        Step::Deliver(who, count) => world.deliver(who, count),
        Step::Hear(who, count) => world.hear(who, count),
        Step::Disk(which, fails) => world.disk(which, fails),
        Step::Tick(nanoseconds) => world.tick(nanoseconds),
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_overwritten_or_left(
        steps in prop::collection::vec(step(), 1..400),
        // The larger ones have slabs.
        size in prop_oneof![Just(64 << 10), Just(16 << 20), Just(64 << 20)],
        patience in prop_oneof![3 => Just(3600 * SECOND), 1 => Just(SECOND / 2)],
        by_death in any::<bool>(),
        says in any::<u32>(),
    ) {
        let mut world = World::new(size, patience);
        for step in steps {
            take(&mut world, step);
            world.validate();
        }
        world.finish(by_death, says);
    }
}
