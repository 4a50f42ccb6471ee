//! Properties of random histories. A failing one is shrunk and can be replayed
//! by proptest's seed.

use oxiray_wire::frame::Outcome;
use proptest::prelude::*;

use super::user::{Ending, Order};
use super::world::{DRIVER, FUNCTIONS, SHAPES, World};

#[derive(Clone, Debug)]
enum Step {
    Put(usize, Vec<usize>, bool),
    Submit(usize, Order),
    Create(usize, Order),
    Call(usize, usize, Order),
    Drop(usize, usize),
    Want(usize, usize),
    Read(usize, usize, usize),
    TakeArgument(usize, usize),
    Begin(usize),
    Answer(usize, Ending),
    Block(usize),
    Unblock(usize),
    Deliver(usize),
    Mail(usize),
    Grant(usize),
    Reclaim(usize),
    Tick(u64),
    Kill(usize),
}

fn places(most: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..8usize, 0..=most)
}

fn order() -> impl Strategy<Value = Order> {
    let kind = (0..4u32, 0..3i32, 0..FUNCTIONS, 0..SHAPES, any::<bool>());
    (places(2), places(2), kind).prop_map(|(refs, nested, kind)| {
        let (returns, retries, function, shape, watch) = kind;
        Order { refs, nested, returns, retries, function, shape, watch }
    })
}

fn ending() -> impl Strategy<Value = Ending> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Done), 1 => Just(Outcome::Raised), 1 => Just(Outcome::Retryable)
    ];
    let ran_ns = prop_oneof![Just(1_000), Just(400_000), Just(50_000_000)];
    (outcome, places(3), any::<bool>(), ran_ns).prop_map(|(outcome, contains, stored, ran_ns)| {
        Ending { outcome, contains, stored, ran_ns }
    })
}

/// One step, with actors and deaths as often as these weights say.
fn step(actors: u32, deaths: u32) -> impl Strategy<Value = Step> {
    let who = || 0..8usize;
    let what = || 0..8usize;
    let rare = prop_oneof![
        actors * 3 + 1 => (who(), what(), order()).prop_map(|(p, at, order)| Step::Call(p, at, order)),
        actors.max(1) => (who(), order()).prop_map(move |(p, order)| match actors {
            0 => Step::Submit(p, order),
            _ => Step::Create(p, order),
        }),
        deaths.max(1) => who().prop_map(move |p| match deaths {
            0 => Step::Tick(1_000_000),
            _ => Step::Kill(p),
        }),
    ];
    prop_oneof![
        4 => (who(), places(2), any::<bool>()).prop_map(|(p, refs, s)| Step::Put(p, refs, s)),
        8 => (who(), order()).prop_map(|(p, order)| Step::Submit(p, order)),
        2 + actors + deaths => rare,
        8 => (who(), what()).prop_map(|(p, at)| Step::Drop(p, at)),
        4 => (who(), what()).prop_map(|(p, at)| Step::Want(p, at)),
        4 => (who(), what(), what()).prop_map(|(p, at, inner)| Step::Read(p, at, inner)),
        8 => (who(), what()).prop_map(|(p, at)| Step::TakeArgument(p, at)),
        10 => who().prop_map(Step::Begin),
        10 => (who(), ending()).prop_map(|(p, ending)| Step::Answer(p, ending)),
        1 => who().prop_map(Step::Block),
        1 => who().prop_map(Step::Unblock),
        40 => (0..64usize).prop_map(Step::Deliver),
        12 => who().prop_map(Step::Mail),
        10 => who().prop_map(Step::Grant),
        1 => who().prop_map(Step::Reclaim),
        1 => prop_oneof![Just(1_000_000), Just(5_000_000), Just(30_000_000)].prop_map(Step::Tick),
    ]
}

fn take(world: &mut World, step: Step) {
    let numbers: Vec<u32> = world.processes.keys().copied().collect();
    let process = |place: usize| numbers[place % numbers.len()];
    match step {
        Step::Put(p, refs, stored) => world.put(process(p), &refs, stored),
        Step::Submit(p, order) => world.submit(process(p), &order),
        Step::Create(p, order) => world.create_actor(process(p), &order),
        Step::Call(p, at, order) => world.call(process(p), at, &order),
        Step::Drop(p, at) => world.drop_ref(process(p), at),
        Step::Want(p, at) => world.want(process(p), at),
        Step::Read(p, at, inner) => world.read(process(p), at, inner),
        Step::TakeArgument(p, at) => world.take_argument(process(p), at),
        Step::Begin(p) => world.begin_next(process(p)),
        Step::Answer(p, ending) => world.answer(process(p), &ending),
        Step::Block(p) => world.block(process(p)),
        Step::Unblock(p) => world.unblock(process(p)),
        Step::Deliver(place) => {
            let channels = world.net.channels.iter();
            let full: Vec<_> = channels.filter(|(_, c)| !c.is_empty()).map(|(k, _)| *k).collect();
            if let Some((from, to)) = full.get(place % full.len().max(1)) {
                world.deliver(*from, *to);
            }
        }
        Step::Mail(p) => world.read_mail(process(p)),
        Step::Grant(turn) => drop(world.net.node.grant(turn).to_string()),
        Step::Reclaim(p) => world.net.node.reclaim(process(p)),
        Step::Tick(ns) => world.tick(ns),
        Step::Kill(p) => {
            if process(p) != DRIVER {
                world.kill(process(p));
            }
        }
    }
}

fn live(workers: u32, steps: Vec<Step>) {
    let mut world = World::new(workers);
    steps.into_iter().for_each(|step| take(&mut world, step));
    world.end();
}

fn steps(actors: u32, deaths: u32) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(actors, deaths), 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    /// O-1 to O-5, and that nothing is freed that somebody holds.
    #[test]
    fn tasks_end_once_and_references_are_counted(workers in 2..5u32, steps in steps(0, 0)) {
        live(workers, steps);
    }

    /// O-6, and that actors end when nobody holds a handle.
    #[test]
    fn calls_keep_their_order_and_actors_end(workers in 2..4u32, steps in steps(4, 0)) {
        live(workers, steps);
    }

    /// All of it when processes die.
    #[test]
    fn deaths_leave_nothing_behind(workers in 2..5u32, steps in steps(2, 2)) {
        live(workers, steps);
    }
}
