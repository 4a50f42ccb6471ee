//! Actors that wait at a node that is to leave go back to the control service.

use oxiray_wire::cluster::{Drain, OfProcess, ReturnActor};
use oxiray_wire::control::{Actor, CreateActor};

use super::*;

const WATCHER: ProcessId = ProcessId::new(A, 9);

impl Nodes {
    /// The control service passes on to node B what a process of node A says.
    fn pass_on(&mut self, from: ProcessId, body: to_node::Body) {
        let said =
            OfProcess { process: from.0, message: Some(body.into()), ..OfProcess::default() };
        self.hear(B, from_control::Body::OfProcess(said));
    }

    /// What node B gave back since the last time.
    fn returned(&mut self) -> Vec<ReturnActor> {
        self.now += SECOND;
        self.event(B, Event::Tick);
        let said = std::mem::take(&mut self.parts.get_mut(&B).expect("is there").asked.to_control);
        let returned = |body| match body {
            to_control::Body::ReturnActor(returned) => Some(returned),
            _ => None,
        };
        said.into_iter().filter_map(returned).collect()
    }

    /// Node B drains, and cannot leave: a program runs there.
    fn drain_second(&mut self) {
        self.admit(B, ProcessKind::Driver);
        let info = NodeInfo { draining: "asked to".into(), ..info(B, 1) };
        self.hear(B, from_control::Body::Drains(Drain { info: Some(info), ..Drain::default() }));
    }
}

fn create() -> to_node::Body {
    to_node::Body::CreateActor(CreateActor { actor: vec![9; 16], ..CreateActor::default() })
}

#[test]
fn who_waits_is_given_back_until_it_is_taken() {
    let mut nodes = Nodes::new(&[1, 1]);
    nodes.drain_second();
    nodes.pass_on(DRIVER, create());
    let [returned] = &nodes.returned()[..] else { panic!("it cannot be started here") };
    assert_eq!(returned.actor, [9; 16]);
    assert_eq!(returned.watchers[0].process, DRIVER.0);
    assert_eq!(nodes.returned(), [], "once is enough");
    // Somebody asks for it who did not know.
    nodes.pass_on(
        WATCHER,
        to_node::Body::WatchActor(Actor { actor: vec![9; 16], ..Actor::default() }),
    );
    let [returned] = &nodes.returned()[..] else { panic!("there is one more to be named") };
    assert_eq!(returned.watchers.len(), 2);
    // The control service was away, and may not have heard.
    nodes.event(B, Event::ControlLost);
    let both = vec![info(A, 1), info(B, 1)];
    nodes.now += SECOND;
    nodes.event(B, Event::Tick);
    nodes.hear(B, from_control::Body::Welcome(Welcome { nodes: both, ..Welcome::default() }));
    assert_eq!(nodes.returned().len(), 1);
    nodes.hear(B, from_control::Body::ActorTaken(vec![9; 16]));
    let node = &nodes.parts[&B].node;
    assert!(node.actors.is_empty() && node.deaths.is_empty(), "it is not ours, and not dead");
    assert_eq!(nodes.returned(), []);
}

#[test]
fn who_waited_before_is_given_back_too() {
    let mut nodes = Nodes::new(&[1, 1]);
    nodes.pass_on(DRIVER, create());
    assert_eq!(nodes.returned(), []);
    nodes.drain_second();
    assert_eq!(nodes.returned().len(), 1);
}
