//! Properties of random histories. A failing one is shrunk and can be replayed
//! by proptest's seed; `PROPTEST_CASES` says how many.

use proptest::prelude::*;

use super::steps::Draw;
use super::world::{Size, World};

const SMALL: Size = Size { nodes: 4, processes: 10, actors: 12 };
const LARGE: Size = Size { nodes: 60, processes: 400, actors: 3_000 };

/// A world with some nodes that are members already.
fn begun(size: Size, nodes: usize) -> World {
    let mut world = World::new(size);
    for index in 0..nodes {
        world.add_node();
        world.connect(index);
        while world.deliver_up(index) || world.deliver_down(index) {}
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    /// C-1 to C-8.
    #[test]
    fn histories(steps in prop::collection::vec(any::<u64>(), 0..400), nodes in 0..3usize) {
        let mut world = begun(SMALL, nodes);
        for step in steps {
            world.step(step);
        }
        world.settle();
        world.check_rest();
    }
}

/// C-1 to C-8, with many of everything.
#[test]
fn a_large_history() {
    let mut world = begun(LARGE, 30);
    let mut draw = Draw(1);
    for _ in 0..20_000 {
        world.step(draw.next());
    }
    world.settle();
    world.check_rest();
}
