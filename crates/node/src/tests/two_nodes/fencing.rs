//! A node that is not heard ends what may be started elsewhere: V-1, V-2, V-3.

use oxiray_ids::ActorId;
use oxiray_wire::cluster::{ActorNews, OfProcess, Ping};
use oxiray_wire::control::{ActorCreated, ActorPhase, CreateActor, Text};

use super::*;
use crate::actors::Stage;

/// One that may be started again, and one that may not.
const MOVABLE: ActorId = ActorId([8; 16]);
const MORTAL: ActorId = ActorId([9; 16]);

impl Nodes {
    /// A alone, with a lease of ten seconds from now and an actor of each kind.
    fn leased() -> Self {
        let mut nodes = Self::new(&[4]);
        nodes.now = 100 * SECOND;
        nodes.event(A, Event::ControlLost);
        nodes.later(SECOND);
        nodes.welcome();
        for (id, max_restarts) in [(MOVABLE, -1), (MORTAL, 0)] {
            nodes.create(id, max_restarts);
            nodes.settle();
            let worker = nodes.worker_of(id).expect("it has one");
            let created = ActorCreated { actor: id.0.to_vec(), ..ActorCreated::default() };
            nodes.say(worker, to_node::Body::ActorCreated(created));
        }
        nodes
    }

    fn later(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
        self.event(A, Event::Tick);
    }

    fn welcome(&mut self) {
        let nodes = vec![info(A, 4)];
        let welcome = Welcome { nodes, lease_ms: 10_000, ..Welcome::default() };
        self.hear(A, from_control::Body::Welcome(welcome));
    }

    fn create(&mut self, id: ActorId, max_restarts: i64) {
        let create = CreateActor { actor: id.0.to_vec(), max_restarts, ..CreateActor::default() };
        let message = Some(to_node::Body::CreateActor(create).into());
        let said = OfProcess { process: DRIVER.0, message, ..OfProcess::default() };
        self.hear(A, from_control::Body::OfProcess(said));
    }

    fn worker_of(&self, id: ActorId) -> Option<ProcessId> {
        self.parts[&A].node.actors[&id].worker()
    }

    fn killed(&mut self) -> Vec<ProcessId> {
        std::mem::take(&mut self.parts.get_mut(&A).expect("is there").asked.killed)
    }

    fn told(&mut self) -> Vec<to_control::Body> {
        std::mem::take(&mut self.parts.get_mut(&A).expect("is there").asked.to_control)
    }

    fn dialled(&mut self) -> usize {
        std::mem::take(&mut self.parts.get_mut(&A).expect("is there").asked.dialled).len()
    }

    /// The control service asks, and has heard `heard`; the mark of the answer.
    fn asked(&mut self, heard: u64) -> u64 {
        self.hear(A, from_control::Body::Ping(Ping { heard, number: 0 }));
        let said = self.told();
        let mark = said.iter().find_map(|body| match body {
            to_control::Body::Pong(pong) => Some(pong.mark),
            _ => None,
        });
        mark.expect("it answers")
    }
}

/// V-1: from the answer that was heard, not from when that is known.
#[test]
fn a_lease_runs_from_what_was_heard() {
    let mut nodes = Nodes::leased();
    let first = nodes.asked(0);
    nodes.later(4 * SECOND);
    nodes.asked(first);
    nodes.later(4 * SECOND);
    nodes.asked(first);
    assert_eq!(nodes.parts[&A].node.lease_until(), Some(first + 10 * SECOND));
    nodes.later(2 * SECOND - 1);
    assert_eq!(nodes.killed(), []);
    nodes.later(1);
    assert!(nodes.parts[&A].node.is_fenced());
}

/// V-1: marks that nobody can have heard are none.
#[test]
fn a_mark_from_the_future_is_not_believed() {
    let mut nodes = Nodes::leased();
    nodes.asked(u64::MAX);
    let until = nodes.parts[&A].node.lease_until();
    assert_eq!(until, Some(nodes.now + 10 * SECOND));
}

/// V-2: what may be started elsewhere ends, and is not begun here; what may not goes on.
#[test]
fn when_it_is_over_what_may_be_elsewhere_ends() {
    let mut nodes = Nodes::leased();
    let (movable, mortal) = (nodes.worker_of(MOVABLE), nodes.worker_of(MORTAL));
    nodes.later(10 * SECOND);
    assert_eq!(nodes.killed(), [movable.expect("lives")]);
    let (reason, last_lines) = ("killed".to_owned(), Vec::new());
    nodes.event(A, Event::Ended { process: movable.expect("lives"), reason, last_lines });
    nodes.settle();
    assert_eq!(nodes.worker_of(MOVABLE), None, "it waits");
    assert_eq!(nodes.worker_of(MORTAL), mortal);
    nodes.told();
    nodes.later(SECOND);
    nodes.welcome();
    let restarts = nodes.told().into_iter().find_map(|body| match body {
        to_control::Body::ActorNews(ActorNews { actor, phase, restarts, .. })
            if actor == MOVABLE.0 && phase == ActorPhase::Restarting as i32 =>
        {
            Some(restarts)
        }
        _ => None,
    });
    assert_eq!(restarts, Some(1), "it says so first");
    nodes.settle();
    let stage = nodes.parts[&A].node.actors[&MOVABLE].stage;
    assert!(matches!(stage, Stage::Starting(_)), "{stage:?}");
}

/// V-3: what was said before the lease ended and comes after it.
#[test]
fn what_comes_late_over_the_old_connection_is_not_heard() {
    let mut nodes = Nodes::leased();
    nodes.now += 10 * SECOND;
    nodes.create(ActorId([7; 16]), -1);
    nodes.hear(A, from_control::Body::GivenUp(Text { text: "silence".into() }));
    assert!(!nodes.parts[&A].node.actors.contains_key(&ActorId([7; 16])));
    assert_eq!(nodes.parts[&A].asked.rejoins, None);
    nodes.dialled();
    nodes.later(0);
    assert_eq!(nodes.dialled(), 1, "at once, over another connection");
    nodes.hear(A, from_control::Body::GivenUp(Text { text: "silence".into() }));
    assert!(nodes.parts[&A].asked.rejoins.is_some());
}
