//! Demands that go elsewhere.

use super::*;

pub(super) fn affine(node: u32) -> Shape {
    let strategy = Strategy { node: id_of(node).0.to_vec(), ..Strategy::default() };
    Shape { strategy: Some(strategy), ..cpus(1) }
}

fn unschedulable(nodes: &mut Nodes) -> Vec<String> {
    nodes.take(A, |_, body| match body {
        Body::Unschedulable(why) => Some(why.reason.clone()),
        _ => None,
    })
}

#[test]
fn what_does_not_fit_here_is_served_elsewhere() {
    let mut nodes = Nodes::new(&[1, 2]);
    nodes.demand(1, cpus(1), 3);
    nodes.settle();
    let mut at: Vec<u32> = nodes.grants().iter().map(|grant| grant.worker.node()).collect();
    at.sort_unstable();
    assert_eq!(at, [A, B, B]);
}

#[test]
fn what_is_placed_here_by_its_strategy_wants_no_other_event() {
    let mut nodes = Nodes::new(&[1]);
    nodes.admit(A, ProcessKind::Worker);
    nodes.demand(1, affine(A), 1);
    assert!(nodes.parts[&A].node.next_wakeup().is_some_and(|at| at <= nodes.now));
    nodes.event(A, Event::Tick);
    assert_eq!(nodes.grants().len(), 1);
}

#[test]
fn what_can_never_fit_here_is_served_elsewhere() {
    let mut nodes = Nodes::new(&[1, 4]);
    nodes.demand(1, cpus(3), 1);
    nodes.settle();
    assert_eq!(nodes.grants()[0].worker.node(), B);
}

#[test]
fn what_is_declined_is_placed_anew() {
    let mut nodes = Nodes::new(&[1, 2, 2]);
    // B has no room, and A does not know yet.
    let other = nodes.admit(B, ProcessKind::Driver);
    let demand =
        SetDemand { shape_key: 1, shape: Some(cpus(2)), requested_total: 1, ..Default::default() };
    nodes.say(other, to_node::Body::SetDemand(demand));
    nodes.settle();
    nodes.demand(1, cpus(2), 2);
    nodes.settle();
    let at: Vec<u32> = nodes.grants().iter().map(|grant| grant.worker.node()).collect();
    assert_eq!(at, [C], "and the second waits");
    let lease = nodes.take(B, |_, body| match body {
        Body::Granted(granted) => Some(granted.lease),
        _ => None,
    });
    nodes.say(other, to_node::Body::ReturnLease(Lease { lease: lease[0] }));
    nodes.tell_load(B, A);
    nodes.settle();
    assert_eq!(nodes.grants()[0].worker.node(), B);
}

#[test]
fn a_lease_elsewhere_goes_back() {
    let mut nodes = Nodes::new(&[1, 2]);
    nodes.demand(1, cpus(2), 1);
    nodes.settle();
    let lease = nodes.grants()[0].lease;
    assert!(!nodes.is_all_free(B));
    nodes.give_back(lease);
    nodes.settle();
    assert!(nodes.is_all_free(B));
    nodes.demand(1, cpus(2), 2);
    nodes.settle();
    assert_eq!(nodes.grants().len(), 1, "before B says that it has room");
}

#[test]
fn a_smaller_total_is_taken_back_elsewhere() {
    let mut nodes = Nodes::new(&[1, 2]);
    nodes.demand(1, cpus(2), 3);
    nodes.settle();
    let lease = nodes.grants()[0].lease;
    nodes.demand(1, cpus(2), 1);
    nodes.settle();
    nodes.give_back(lease);
    nodes.settle();
    assert!(nodes.grants().is_empty() && nodes.is_all_free(B), "B-1");
}

#[test]
fn the_death_of_a_worker_elsewhere_is_heard_of_here() {
    let mut nodes = Nodes::new(&[1, 2]);
    nodes.demand(1, cpus(2), 1);
    nodes.settle();
    let worker = nodes.grants()[0].worker;
    let reason = "exit code 1".to_owned();
    nodes.event(B, Event::Ended { process: worker, reason, last_lines: Vec::new() });
    nodes.settle();
    let deaths = nodes.take(A, |to, body| match body {
        Body::ProcessDied(died) => Some((to, ProcessId(died.process), died.reason.clone())),
        _ => None,
    });
    assert_eq!(deaths, [(DRIVER, worker, "exit code 1".to_owned())], "F-2");
    assert!(nodes.is_all_free(B));
}

#[test]
fn the_death_of_a_driver_ends_its_leases_elsewhere() {
    let mut nodes = Nodes::new(&[1, 2]);
    nodes.demand(1, cpus(2), 2);
    nodes.settle();
    let worker = nodes.grants()[0].worker;
    let reason = "exit code 1".to_owned();
    nodes.event(A, Event::Ended { process: DRIVER, reason, last_lines: Vec::new() });
    nodes.settle();
    assert_eq!(nodes.parts[&B].asked.killed, [worker]);
    assert!(nodes.is_all_free(B));
    assert_eq!(nodes.parts[&B].node.load().waiting, 0, "nor does it wait for more");
}

#[test]
fn what_a_node_that_left_was_asked_for_is_placed_anew() {
    let mut nodes = Nodes::new(&[1, 2, 2]);
    nodes.demand(1, cpus(2), 2);
    // Both were asked, and one dies before it answers.
    nodes.lose(B);
    nodes.settle();
    let [grant] = nodes.grants()[..] else { panic!() };
    assert_eq!(grant.worker.node(), C);
    nodes.give_back(grant.lease);
    nodes.settle();
    assert_eq!(nodes.grants().len(), 1, "it has not been forgotten");
}

#[test]
fn a_grant_of_a_node_that_left_meanwhile_is_none() {
    let mut nodes = Nodes::new(&[1, 2, 2]);
    nodes.demand(1, cpus(2), 1);
    while nodes.parts[&B].node.leases.is_empty() && nodes.parts[&C].node.leases.is_empty() {
        assert!(nodes.deliver() || nodes.parts.values().any(|part| part.asked.starting > 0));
        for number in [B, C] {
            if std::mem::take(&mut nodes.parts.get_mut(&number).expect("is there").asked.starting)
                > 0
            {
                nodes.admit(number, ProcessKind::Worker);
            }
        }
    }
    let asked = if nodes.parts[&B].node.leases.is_empty() { C } else { B };
    // Its grant comes after the news that it left.
    nodes.hear(A, from_control::Body::NodeLeft(left(asked)));
    nodes.settle();
    let [grant] = nodes.grants()[..] else { panic!("one from the other node") };
    assert_ne!(grant.worker.node(), asked);
    nodes.give_back(grant.lease);
    nodes.demand(1, cpus(2), 2);
    nodes.settle();
    assert_eq!(nodes.grants().len(), 1, "what never came was not counted");
}

#[test]
fn spreading_deals() {
    let mut nodes = Nodes::new(&[4, 4, 4, 4]);
    let strategy = Some(Strategy { spread: true, ..Strategy::default() });
    nodes.demand(1, Shape { strategy, ..cpus(1) }, 8);
    nodes.settle();
    let mut at: Vec<u32> = nodes.grants().iter().map(|grant| grant.worker.node()).collect();
    at.sort_unstable();
    assert_eq!(at, [A, A, B, B, C, C, D, D]);
}

#[test]
fn what_insists_on_a_node_goes_there_or_fails() {
    let mut nodes = Nodes::new(&[2, 1]);
    nodes.demand(1, affine(B), 1);
    nodes.settle();
    assert_eq!(nodes.grants()[0].worker.node(), B);
    nodes.demand(1, affine(B), 2);
    nodes.settle();
    assert!(nodes.grants().is_empty() && unschedulable(&mut nodes).is_empty(), "it waits");
    nodes.lose(B);
    nodes.settle();
    assert_eq!(unschedulable(&mut nodes).len(), 1);
    nodes.demand(2, affine(B), 1);
    assert_eq!(unschedulable(&mut nodes).len(), 1);
}

#[test]
fn who_is_asked_by_a_node_it_does_not_know_yet_serves_it_when_it_does() {
    let mut nodes = Nodes::unjoined(&[2, 1]);
    let infos = [info(A, 2), info(B, 1)];
    nodes.hear(A, from_control::Body::NodeJoined(infos[0].clone()));
    for info in &infos {
        nodes.hear(B, from_control::Body::NodeJoined(info.clone()));
    }
    let asker = nodes.admit(B, ProcessKind::Driver);
    let demand =
        SetDemand { shape_key: 1, shape: Some(cpus(2)), requested_total: 1, ..Default::default() };
    nodes.say(asker, to_node::Body::SetDemand(demand));
    nodes.settle();
    assert!(nodes.is_all_free(A), "the news that B joined is late at A");
    nodes.hear(A, from_control::Body::NodeJoined(infos[1].clone()));
    nodes.settle();
    assert_eq!(nodes.parts[&A].node.leases.len(), 1);
}

/// What a node that is silent was asked for is had elsewhere; what it grants all the same is granted.
#[test]
fn a_suspect_is_asked_for_nothing_and_what_it_was_asked_for_is_called_back() {
    let mut nodes = Nodes::new(&[1, 4, 4]);
    let suspect = |suspect| {
        let load = Load { node: B, available: cpus(4).resources, suspect, ..Load::default() };
        from_control::Body::Loads(Loads { loads: vec![load] })
    };
    nodes.demand(1, Shape { near: B, ..cpus(2) }, 1);
    nodes.event(A, Event::Tick);
    let asked = |wire: &&(u32, u32, between_nodes::Body)| {
        matches!(wire, (A, B, between_nodes::Body::AskLeases(_)))
    };
    assert_eq!(nodes.wires.iter().filter(asked).count(), 1, "it is near its arguments");
    // None of it comes, nor an answer.
    nodes.hear(A, suspect(true));
    nodes.event(A, Event::Tick);
    let (held, others): (Vec<_>, Vec<_>) =
        std::mem::take(&mut nodes.wires).into_iter().partition(|(_, to, _)| *to == B);
    nodes.wires = others.into();
    nodes.settle();
    assert_eq!(nodes.grants()[0].worker.node(), C);
    // It is there again, and hears that it is asked for no more.
    nodes.wires.extend(held);
    nodes.hear(A, suspect(false));
    nodes.settle();
    assert!(nodes.grants().is_empty() && nodes.is_all_free(B));
}
