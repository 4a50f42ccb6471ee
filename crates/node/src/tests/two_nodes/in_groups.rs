//! Demands that are to be in a placement group.

use oxiray_ids::GroupId;
use oxiray_wire::cluster::{GroupInfo, NumberedBundle, Reserve};
use oxiray_wire::control::{Bundle, GroupPhase};

use super::*;

const GROUP: GroupId = GroupId([7; 18]);

/// One CPU in the group's first bundle.
fn in_bundle() -> Shape {
    let group = GROUP.0.to_vec();
    Shape { strategy: Some(Strategy { group, bundle: Some(0), ..Strategy::default() }), ..cpus(1) }
}

impl Nodes {
    fn reserve(&mut self, node: u32) {
        let bundles = vec![NumberedBundle { index: 0, resources: cpus(1).resources }];
        let group = GROUP.0.to_vec();
        let asked = Reserve { group, attempt: 1, bundles, commit: true };
        self.hear(node, from_control::Body::Reserve(asked));
    }

    /// Node A hears where the bundle is.
    fn tell_place(&mut self, node: u32) {
        let news = GroupInfo {
            group: GROUP.0.to_vec(),
            phase: GroupPhase::Created as i32,
            bundles: vec![Bundle { resources: cpus(1).resources, ..Bundle::default() }],
            nodes: vec![node],
            ..GroupInfo::default()
        };
        self.hear(A, from_control::Body::GroupNews(news));
    }
}

#[test]
fn a_unit_that_was_asked_of_a_lost_node_goes_where_its_bundle_does() {
    for next in [A, C] {
        let mut nodes = Nodes::new(&[1, 1, 1]);
        nodes.reserve(B);
        nodes.demand(1, in_bundle(), 1);
        nodes.tell_place(B);
        // B is gone before it answers, and it is some time until the bundle is elsewhere.
        nodes.lose(B);
        nodes.settle();
        assert!(nodes.grants().is_empty());
        nodes.reserve(next);
        nodes.tell_place(next);
        // What is placed here is served in the next pass.
        nodes.event(A, Event::Tick);
        nodes.settle();
        let at: Vec<u32> = nodes.grants().iter().map(|grant| grant.worker.node()).collect();
        assert_eq!(at, [next]);
    }
}
