//! Who is in the cluster.

use oxiray_wire::cluster::{Load, Pong, from_control, to_control};
use oxiray_wire::control::{Amount, Empty, Text};

use super::bench::{Bench, MS, join};
use crate::{Event, PeerId};

fn numbers(bench: &mut Bench) -> Vec<u32> {
    let nodes = bench.see().nodes;
    nodes.iter().filter(|node| node.left.is_empty()).map(|node| node.number).collect()
}

#[test]
fn who_joins_knows_all_and_all_know_it() {
    let mut bench = Bench::new();
    bench.join(1);
    let asked = bench.join(2);
    let [from_control::Body::Welcome(welcome)] = &asked.to(2)[..] else { panic!() };
    assert_eq!((welcome.number, welcome.nodes.len()), (2, 2));
    assert_eq!(welcome.cluster, [3; 16]);
    let [from_control::Body::NodeJoined(info)] = &asked.to(1)[..] else { panic!() };
    assert_eq!(info.number, 2);
}

/// C-2, over restarts too.
#[test]
fn numbers_are_never_given_again() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    bench.event(Event::Closed(PeerId(2)));
    bench.restart();
    let asked = bench.join(3);
    let from_control::Body::Welcome(welcome) = asked.to(3)[0] else { panic!() };
    assert_eq!(welcome.number, 3);
}

#[test]
fn another_python_is_refused() {
    let mut bench = Bench::new();
    bench.join(1);
    let mut other = join(2);
    other.node.as_mut().unwrap().python = "3.12.1".into();
    let asked = bench.say(2, to_control::Body::Join(other));
    let text = asked.refusal(2);
    assert!(text.contains("Python 3.12") && text.contains("Start the node with Python 3.11"));
    assert_eq!(asked.closed, [PeerId(2)]);
    assert_eq!(numbers(&mut bench), [1]);
}

#[test]
fn a_connection_that_ends_ends_its_member() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    let asked = bench.event(Event::Closed(PeerId(2)));
    let [from_control::Body::NodeLeft(info)] = &asked.to(1)[..] else { panic!() };
    assert_eq!(info.left, "its node service ended or its connection broke");
    assert_eq!(numbers(&mut bench), [1]);
    assert_eq!(bench.see().nodes.len(), 2, "who left is still shown");
}

#[test]
fn members_know_where_control_services_are() {
    let mut bench = Bench::new();
    bench.join(1);
    let both = vec!["10.0.0.1:1".to_owned(), "10.0.0.2:1".to_owned()];
    let asked = bench.set_heads(&both);
    let [from_control::Body::Heads(heads)] = &asked.to(1)[..] else { panic!() };
    assert_eq!(heads.addresses, both);
    assert!(bench.set_heads(&both).to(1).is_empty(), "that is no news");
    let asked = bench.join(2);
    let [from_control::Body::Welcome(welcome)] = &asked.to(2)[..] else { panic!() };
    assert_eq!(welcome.heads, both);
    assert_eq!(bench.see().heads, both);
}

#[test]
fn one_that_leaves_is_let_go() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    let asked = bench.say(2, to_control::Body::Leave(Text { text: "it was stopped".into() }));
    assert_eq!(asked.closed, [PeerId(2)]);
    assert!(asked.to(2).is_empty());
    assert_eq!(numbers(&mut bench), [1]);
    bench.event(Event::Closed(PeerId(2)));
}

#[test]
fn nobody_is_blamed_when_control_itself_stood_still() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.tick(60_000);
    assert_eq!(numbers(&mut bench), [1]);
    for _ in 0..45 {
        bench.tick(500);
    }
    assert!(numbers(&mut bench).is_empty(), "but then it must speak");
}

#[test]
fn who_gave_up_waiting_for_control_may_come_back() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.now.ns += 6_000 * MS;
    bench.event(Event::Closed(PeerId(1)));
    assert_eq!(numbers(&mut bench), [1]);
    let mut again = join(1);
    again.cluster = vec![3; 16];
    again.node.as_mut().unwrap().number = 1;
    let asked = bench.say(2, to_control::Body::Join(again));
    assert!(matches!(asked.to(2)[0], from_control::Body::Welcome(_)));
    // Later a broken connection means what it always does.
    for _ in 0..21 {
        bench.tick(500);
        bench.say(2, to_control::Body::Pong(Pong::default()));
    }
    bench.event(Event::Closed(PeerId(2)));
    assert!(numbers(&mut bench).is_empty());
}

#[test]
fn after_a_restart_members_have_time_to_come_back() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    bench.restart();
    assert_eq!(numbers(&mut bench), [1, 2]);
    let mut again = join(1);
    again.cluster = vec![3; 16];
    again.node.as_mut().unwrap().number = 1;
    let asked = bench.say(11, to_control::Body::Join(again));
    let from_control::Body::Welcome(welcome) = asked.to(11)[0] else { panic!() };
    assert_eq!((welcome.number, welcome.nodes.len()), (1, 2));
    for _ in 0..43 {
        bench.tick(500);
        bench.say(11, to_control::Body::Pong(Pong::default()));
        assert_eq!(numbers(&mut bench), [1, 2]);
    }
    let asked = bench.tick(500);
    assert_eq!(numbers(&mut bench), [1]);
    let from_control::Body::NodeLeft(info) = asked.to(11)[0] else { panic!() };
    assert_eq!(info.left, "it could not be reached, and did not come back within 22 s");
}

#[test]
fn a_member_of_another_cluster_is_refused() {
    let mut bench = Bench::new();
    let mut foreign = join(1);
    foreign.cluster = vec![9; 16];
    foreign.node.as_mut().unwrap().number = 1;
    let asked = bench.say(1, to_control::Body::Join(foreign));
    assert!(asked.refusal(1).contains("the cluster that this node was a member of is no more"));
}

#[test]
fn a_new_connection_of_a_member_replaces_the_old_one() {
    let mut bench = Bench::new();
    bench.join(1);
    let mut again = join(1);
    again.cluster = vec![3; 16];
    again.node.as_mut().unwrap().number = 1;
    let asked = bench.say(5, to_control::Body::Join(again));
    assert_eq!(asked.closed, [PeerId(1)]);
    bench.event(Event::Closed(PeerId(1)));
    assert_eq!(numbers(&mut bench), [1]);
}

#[test]
fn a_node_is_removed_by_the_beginning_of_its_id() {
    let mut bench = Bench::new();
    bench.join(0x11);
    bench.join(0x12);
    let mut remove =
        |text: &str| bench.say(99, to_control::Body::Remove(Text { text: text.into() }));
    assert!(remove("1").refusal(99).contains("2 nodes"));
    assert!(remove("").refusal(99).contains("say which node"));
    assert!(remove("ff").refusal(99).contains("no node's id begins with ff"));
    let asked = remove("12");
    assert!(asked.refusal(0x12).contains("removed"));
    assert!(matches!(asked.to(99)[..], [from_control::Body::NodeLeft(_)]));
    assert_eq!(numbers(&mut bench), [1]);
}

#[test]
fn loads_are_passed_on_together() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    bench.tick(100);
    let load = |free| Load {
        node: 1, // Not believed: it is who says it.
        available: vec![Amount { name: "CPU".into(), amount: free }],
        ..Load::default()
    };
    bench.say(1, to_control::Body::Load(load(7)));
    bench.say(2, to_control::Body::Load(load(8)));
    bench.say(2, to_control::Body::Load(load(9)));
    assert!(bench.control.next_wakeup().is_some_and(|at| at <= bench.now.ns + 50 * MS));
    let asked = bench.tick(50);
    for peer in [1, 2] {
        let [from_control::Body::Loads(loads)] = &asked.to(peer)[..] else { panic!() };
        let told: Vec<(u32, u64)> =
            loads.loads.iter().map(|load| (load.node, load.available[0].amount)).collect();
        assert_eq!(told, [(1, 7), (2, 9)]);
    }
    assert!(bench.tick(50).sent.is_empty(), "nothing changed");
}

#[test]
fn the_secret_is_changed_by_the_shell() {
    let mut bench = Bench::new();
    bench.join(1);
    let asked = bench.say(7, to_control::Body::Rotate(Empty {}));
    assert_eq!(asked.rotations, [PeerId(7)]);
    assert!(bench.control.node_peers().eq([PeerId(1)]));
}
