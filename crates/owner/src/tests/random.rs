//! Properties of random histories. A failing one is shrunk and can be replayed
//! by proptest's seed.

use oxiray_wire::frame::{Outcome, Returns};
use proptest::prelude::*;

use super::user::Order;
use super::work::Ending;
use super::world::{DRIVER, FUNCTIONS, Process, SHAPES, World};

#[derive(Clone, Debug)]
enum Step {
    /// For another to own, or oneself.
    Put(usize, usize, Vec<usize>, bool),
    FreeValue(usize, usize),
    Cancel(usize, usize),
    Submit(usize, Order),
    /// Submits, and lets go of the first reference that it passes.
    Give(usize, Order),
    Create(usize, Order),
    Call(usize, usize, Order),
    Drop(usize, usize),
    Want(usize, usize),
    Read(usize, usize, usize),
    TakeArgument(usize, usize),
    Begin(usize),
    /// Begins a task and reads its arguments.
    BeginAndTake(usize),
    Answer(usize, Ending),
    /// Answers, and lets go of the first reference that it returns.
    Return(usize, Ending),
    /// Yields an item that contains these.
    Yield(usize, Vec<usize>, bool),
    TakeItem(usize, usize),
    Peek(usize, usize),
    DropReader(usize, usize),
    Block(usize),
    Unblock(usize),
    /// Of a fast channel; `DeliverSlow` of any.
    Deliver(usize),
    DeliverSlow(usize),
    Mail(usize),
    Grant(usize),
    Reclaim(usize),
    Tick(u64),
    Kill(usize),
    /// By turn among those that are there.
    LoseNode(usize),
}

fn places(most: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..8usize, 0..=most)
}

fn order() -> impl Strategy<Value = Order> {
    let kind = (0..4u32, 0..3i32, 0..FUNCTIONS, 0..SHAPES, any::<bool>());
    (places(2), places(2), kind, stream()).prop_map(|(refs, nested, kind, stream)| {
        let (returns, retries, function, shape, watch) = kind;
        Order { refs, nested, returns, retries, function, shape, watch, stream }
    })
}

fn stream() -> impl Strategy<Value = Option<Returns>> {
    prop_oneof![
        4 => Just(None),
        2 => (0..3u32).prop_map(|ahead| Some(Returns::Stream { ahead })),
        1 => Just(Some(Returns::Gathered)),
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Done), 1 => Just(Outcome::Raised), 1 => Just(Outcome::Retryable)
    ];
    let ran_ns = prop_oneof![Just(1_000), Just(400_000), Just(50_000_000)];
    let values = (places(3), any::<bool>(), 0..4u32);
    (outcome, values, ran_ns).prop_map(|(outcome, (contains, stored, made), ran_ns)| Ending {
        outcome,
        contains,
        stored,
        made,
        ran_ns,
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
        4 => (who(), who(), places(2), any::<bool>(), any::<bool>()).prop_map(
            |(p, q, refs, stored, own)| Step::Put(p, if own { p } else { q }, refs, stored),
        ),
        1 => (who(), what()).prop_map(|(p, at)| Step::FreeValue(p, at)),
        2 => (who(), what()).prop_map(|(p, at)| Step::Cancel(p, at)),
        8 => (who(), order()).prop_map(|(p, order)| Step::Submit(p, order)),
        2 + actors + deaths => rare,
        8 => (who(), what()).prop_map(|(p, at)| Step::Drop(p, at)),
        4 => (who(), what()).prop_map(|(p, at)| Step::Want(p, at)),
        4 => (who(), what(), what()).prop_map(|(p, at, inner)| Step::Read(p, at, inner)),
        8 => (who(), what()).prop_map(|(p, at)| Step::TakeArgument(p, at)),
        10 => who().prop_map(Step::Begin),
        10 => (who(), ending()).prop_map(|(p, ending)| Step::Answer(p, ending)),
        8 => (who(), places(2), any::<bool>()).prop_map(|(p, refs, s)| Step::Yield(p, refs, s)),
        6 => (who(), what()).prop_map(|(p, at)| Step::TakeItem(p, at)),
        1 => (who(), what()).prop_map(|(p, at)| Step::Peek(p, at)),
        1 => (who(), what()).prop_map(|(p, at)| Step::DropReader(p, at)),
        1 => who().prop_map(Step::Block),
        1 => who().prop_map(Step::Unblock),
        40 => (0..64usize).prop_map(Step::Deliver),
        4 => (0..64usize).prop_map(Step::DeliverSlow),
        12 => who().prop_map(Step::Mail),
        10 => who().prop_map(Step::Grant),
        1 => who().prop_map(Step::Reclaim),
        1 => prop_oneof![Just(1_000_000), Just(5_000_000), Just(30_000_000)].prop_map(Step::Tick),
    ]
}

/// One of the processes that can do something; of all, if none can.
fn choose(world: &World, place: usize, can: impl Fn(&Process) -> bool) -> u64 {
    let able = world.processes.iter().filter(|(_, process)| can(process));
    let able: Vec<u64> = able.map(|(number, _)| *number).collect();
    let all = world.processes.keys().copied();
    let from = if able.is_empty() { all.collect() } else { able };
    from[place % from.len()]
}

fn deliver(world: &mut World, place: usize, may: impl Fn(&World, (u64, u64)) -> bool) {
    let full = world.net.channels.iter().filter(|(_, frames)| !frames.is_empty());
    let full: Vec<_> = full.map(|(ends, _)| *ends).filter(|ends| may(world, *ends)).collect();
    if let Some((from, to)) = full.get(place % full.len().max(1)) {
        world.deliver(*from, *to);
    }
}

fn take(world: &mut World, step: Step) {
    let any = |world: &World, p| choose(world, p, |_| true);
    let holding = |world: &World, p| choose(world, p, |process| !process.refs.is_empty());
    let running = |world: &World, p| choose(world, p, |process| process.running.is_some());
    let reading = |world: &World, p| choose(world, p, |process| !process.readers.is_empty());
    let ready = |world: &World, p| {
        choose(world, p, |process| process.running.is_none() && !process.queue.is_empty())
    };
    match step {
        Step::Put(p, q, refs, stored) => {
            world.put(any(world, p), any(world, q), &refs, stored);
        }
        Step::FreeValue(p, at) => world.free_value(holding(world, p), at),
        Step::Cancel(p, at) => world.cancel(holding(world, p), at),
        Step::Submit(p, order) => world.submit(any(world, p), &order),
        Step::Create(p, order) => world.create_actor(any(world, p), &order),
        Step::Call(p, at, order) => world.call(holding(world, p), at, &order),
        Step::Drop(p, at) => world.drop_ref(holding(world, p), at),
        Step::Want(p, at) => world.want(holding(world, p), at),
        Step::Read(p, at, inner) => world.read(holding(world, p), at, inner),
        Step::TakeArgument(p, at) => world.take_argument(running(world, p), at),
        Step::Give(p, order) => {
            let process = holding(world, p);
            world.submit(process, &order);
            order.nested.first().into_iter().for_each(|place| world.drop_ref(process, *place));
        }
        Step::Begin(p) => world.begin_next(ready(world, p)),
        Step::BeginAndTake(p) => {
            let process = ready(world, p);
            world.begin_next(process);
            if world.processes.contains_key(&process) {
                (0..2).for_each(|place| world.take_argument(process, place));
            }
        }
        Step::Answer(p, ending) => world.answer(running(world, p), &ending),
        Step::Return(p, ending) => {
            let process = running(world, p);
            world.answer(process, &ending);
            ending.contains.first().into_iter().for_each(|place| world.drop_ref(process, *place));
        }
        Step::Yield(p, refs, stored) => {
            world.yield_item(running(world, p), &refs, stored);
        }
        Step::TakeItem(p, at) => {
            world.take_item(reading(world, p), at);
        }
        Step::Peek(p, at) => world.peek(reading(world, p), at),
        Step::DropReader(p, at) => world.drop_reader(reading(world, p), at),
        Step::Block(p) => world.block(running(world, p)),
        Step::Unblock(p) => world.unblock(choose(world, p, |process| process.blocked.is_some())),
        Step::Deliver(place) => deliver(world, place, |world, channel| !world.is_slow(channel)),
        Step::DeliverSlow(place) => deliver(world, place, |_, _| true),
        Step::Mail(place) => {
            let mail = world.net.node.mail.iter();
            let full: Vec<_> = mail.filter(|(_, m)| !m.is_empty()).map(|(k, _)| *k).collect();
            if let Some(process) = full.get(place % full.len().max(1)) {
                world.read_mail(*process);
            }
        }
        Step::Grant(turn) => {
            world.net.node.grant(turn);
        }
        Step::Reclaim(p) => world.net.node.reclaim(any(world, p)),
        Step::Tick(ns) => world.tick(ns),
        Step::LoseNode(turn) => {
            let node = world.living_node(turn);
            world.lose_node(node);
        }
        Step::Kill(p) => {
            let process = any(world, p);
            if process != DRIVER {
                world.kill(process);
            }
        }
    }
}

/// Steps of tasks that pass stored values on, on nodes that are lost.
fn losing() -> impl Strategy<Value = Step> {
    let who = || 0..8usize;
    let places = || prop::collection::vec(0..8usize, 0..=2);
    let order = (places(), 1..3u32, 0..4i32, any::<bool>(), stream()).prop_map(
        |(refs, returns, retries, watch, stream)| Order {
            refs,
            returns,
            retries,
            watch,
            stream,
            ..Order::default()
        },
    );
    let ending =
        ending().prop_map(|ending| Ending { stored: true, contains: Vec::new(), ..ending });
    prop_oneof![
        20 => step(1, 1),
        10 => (who(), order).prop_map(|(p, order)| Step::Submit(p, order)),
        10 => (who(), ending).prop_map(|(p, ending)| Step::Answer(p, ending)),
        10 => who().prop_map(|p| Step::Yield(p, Vec::new(), true)),
        10 => who().prop_map(Step::Begin),
        8 => who().prop_map(Step::Grant),
        8 => who().prop_map(Step::Mail),
        2 => who().prop_map(Step::LoseNode),
    ]
}

/// Steps that pass a few references around between busy processes.
fn passing() -> impl Strategy<Value = Step> {
    let who = || 0..8usize;
    let what = || 0..4usize;
    let order = (prop::collection::vec(0..4usize, 1..=2), 0..2u32)
        .prop_map(|(nested, returns)| Order { nested, returns, ..Order::default() });
    let contains = prop::collection::vec(0..4usize, 0..=2);
    prop_oneof![
        1 => (who(), who(), places(1)).prop_map(|(p, q, refs)| Step::Put(p, q, refs, false)),
        8 => (who(), order).prop_map(|(p, order)| Step::Give(p, order)),
        4 => (who(), what()).prop_map(|(p, at)| Step::Drop(p, at)),
        4 => (who(), what()).prop_map(|(p, at)| Step::Want(p, at)),
        4 => (who(), what(), what()).prop_map(|(p, at, inner)| Step::Read(p, at, inner)),
        2 => who().prop_map(Step::Begin),
        8 => who().prop_map(Step::BeginAndTake),
        6 => (who(), contains).prop_map(|(p, contains)| {
            Step::Return(p, Ending { contains, ..Ending::done() })
        }),
        20 => (0..64usize).prop_map(Step::Deliver),
        2 => (0..64usize).prop_map(Step::DeliverSlow),
        5 => who().prop_map(Step::Mail),
        5 => who().prop_map(Step::Grant),
    ]
}

fn live(workers: u32, slow: u32, steps: Vec<Step>) {
    live_in(World::new(workers), slow, steps);
}

fn live_in(mut world: World, slow: u32, steps: Vec<Step>) {
    world.slow = slow;
    steps.into_iter().for_each(|step| take(&mut world, step));
    world.end();
}

fn steps(step: impl Strategy<Value = Step>) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    /// O-1 to O-5, and that nothing is freed that somebody holds.
    #[test]
    fn tasks_end_once_and_references_are_counted(
        workers in 2..5u32, slow in any::<u32>(), steps in steps(step(0, 0)),
    ) {
        live(workers, slow, steps);
    }

    /// O-3, and that nothing is freed that somebody holds, however late a message is.
    #[test]
    fn references_are_passed_around(slow in any::<u32>(), steps in steps(passing())) {
        live(3, slow, steps);
    }

    /// O-6, and that actors end when nobody holds a handle.
    #[test]
    fn calls_keep_their_order_and_actors_end(
        workers in 2..4u32, slow in any::<u32>(), steps in steps(step(4, 0)),
    ) {
        live(workers, slow, steps);
    }

    /// All of it when nodes are lost with what is in their stores.
    #[test]
    fn lost_nodes_leave_nothing_behind(
        nodes in 2..4u32, workers in 2..5u32, slow in any::<u32>(), steps in steps(losing()),
    ) {
        live_in(World::on_nodes(nodes, workers), slow, steps);
    }

    /// All of it when processes die.
    #[test]
    fn deaths_leave_nothing_behind(
        workers in 2..5u32, slow in any::<u32>(), steps in steps(step(2, 2)),
    ) {
        live(workers, slow, steps);
    }
}
