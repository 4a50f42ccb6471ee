//! Questions of tools that go elsewhere.

use oxiray_wire::control::{Listing, Query, Topic};

use super::*;

fn ask(nodes: &mut Nodes, tool: ProcessId, topic: Topic, node: u32) {
    let query = Query { request: 5, topic: topic.into(), node, ..Query::default() };
    nodes.say(tool, to_node::Body::Query(query));
    nodes.settle();
}

fn listings(nodes: &mut Nodes, tool: ProcessId) -> Vec<Listing> {
    nodes.take(A, |to, body| match body {
        Body::Listing(listing) if to == tool => Some(listing.clone()),
        _ => None,
    })
}

#[test]
fn a_tool_asks_another_node_by_way_of_its_own() {
    let mut nodes = Nodes::new(&[1, 1]);
    let worker = nodes.admit(B, ProcessKind::Worker);
    let tool = nodes.admit(A, ProcessKind::Observer);
    ask(&mut nodes, tool, Topic::Processes, B);
    let [listing] = &listings(&mut nodes, tool)[..] else { panic!() };
    let ids: Vec<u64> = listing.processes.iter().map(|info| info.process).collect();
    assert_eq!((listing.request, ids), (5, vec![worker.0]), "the tool itself is not shown");
    ask(&mut nodes, tool, Topic::Processes, 0);
    let [listing] = &listings(&mut nodes, tool)[..] else { panic!() };
    assert_eq!(listing.processes[0].process, DRIVER.0);
    ask(&mut nodes, tool, Topic::Cluster, B);
    let views = nodes.take(A, |_, body| match body {
        Body::ClusterView(view) => Some(view.node.clone()),
        _ => None,
    });
    assert_eq!(views, [id_of(B).0.to_vec()]);
}

#[test]
fn workers_that_ended_are_remembered_with_why() {
    let mut nodes = Nodes::new(&[1, 1]);
    let worker = nodes.admit(B, ProcessKind::Worker);
    let tool = nodes.admit(A, ProcessKind::Observer);
    let (reason, last_lines) = ("exit code 3".to_owned(), Vec::new());
    nodes.now += SECOND;
    nodes.event(B, Event::Ended { process: worker, reason, last_lines });
    ask(&mut nodes, tool, Topic::Processes, B);
    let [listing] = &listings(&mut nodes, tool)[..] else { panic!() };
    let ended = &listing.processes[0];
    assert_eq!((ended.process, &ended.reason[..]), (worker.0, "exit code 3"));
    assert_eq!(ended.ended_ms - ended.started_ms, 1000);
}

#[test]
fn files_are_read_where_they_are() {
    let mut nodes = Nodes::new(&[1, 1]);
    let tool = nodes.admit(A, ProcessKind::Observer);
    for node in [0, A, B] {
        let path = "logs/x".to_owned();
        let wanted = ReadFile { node, path, ..ReadFile::default() };
        nodes.say(tool, to_node::Body::ReadFile(wanted));
    }
    nodes.settle();
    let read = |number: u32| &nodes.parts[&number].asked.files;
    assert_eq!((read(A).len(), read(B).len()), (2, 1));
    assert_eq!(read(B)[0].0, tool, "the answer goes to whoever asked");
}

#[test]
fn a_node_that_is_gone_answers_by_that() {
    let mut nodes = Nodes::new(&[1, 1]);
    let tool = nodes.admit(A, ProcessKind::Observer);
    let lost = |nodes: &mut Nodes| {
        nodes.take(A, |to, body| match body {
            Body::NodeLost(lost) if to == tool => Some((lost.node, lost.reason.clone())),
            _ => None,
        })
    };
    ask(&mut nodes, tool, Topic::Processes, 9);
    assert_eq!(lost(&mut nodes), [(9, "there is no such node".to_owned())]);
    // One that leaves while it is asked is heard of, too.
    let query = Query { topic: Topic::Processes.into(), node: B, ..Query::default() };
    nodes.say(tool, to_node::Body::Query(query));
    nodes.lose(B);
    assert_eq!(lost(&mut nodes), [(B, "it died".to_owned())]);
    ask(&mut nodes, tool, Topic::Processes, B);
    assert_eq!(lost(&mut nodes), [(B, "it died".to_owned())]);
}
