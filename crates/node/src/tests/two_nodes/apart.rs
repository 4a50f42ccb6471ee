//! Members that do not reach each other, though both live.

use oxiray_ids::ActorId;
use oxiray_wire::cluster::OfProcess;
use oxiray_wire::control::{ActorCreated, ActorPhase, CreateActor};

use super::leases::affine;
use super::*;

const ACTOR: ActorId = ActorId([7; 16]);

fn spread() -> Shape {
    let strategy = Some(Strategy { spread: true, ..Strategy::default() });
    Shape { strategy, ..cpus(1) }
}

fn softly(node: u32) -> Shape {
    let node = id_of(node).0.to_vec();
    let strategy = Some(Strategy { node, soft: true, ..Strategy::default() });
    Shape { strategy, ..cpus(1) }
}

impl Nodes {
    fn asked_of(&self, node: u32) -> i64 {
        let asked = self.wires.iter().filter_map(|wire| match wire {
            (A, to, between_nodes::Body::AskLeases(asked)) if *to == node => Some(asked.more),
            _ => None,
        });
        asked.sum()
    }

    fn grants_at(&mut self) -> Vec<u32> {
        self.grants().iter().map(|grant| grant.worker.node()).collect()
    }
}

/// also when the control service goes on telling of it.
#[test]
fn what_may_go_elsewhere_does() {
    let mut nodes = Nodes::new(&[4, 4, 4]);
    nodes.event(A, Event::PeerAway(B));
    nodes.tell_load(B, A);
    nodes.demand(1, spread(), 6);
    nodes.demand(2, softly(B), 1);
    assert_eq!(nodes.asked_of(B), 0, "nobody is there to answer");
    nodes.settle();
    let at = nodes.grants_at();
    assert!(at.len() == 7 && !at.contains(&B), "{at:?}");
    nodes.event(A, Event::PeerBack(B));
    nodes.tell_load(B, A);
    nodes.demand(3, softly(B), 1);
    nodes.settle();
    assert_eq!(nodes.grants_at(), [B], "as it was before");
}

///
#[test]
fn what_was_asked_for_is_looked_for_elsewhere() {
    let mut nodes = Nodes::new(&[1, 2, 2]);
    nodes.demand(1, softly(B), 1);
    assert_eq!(nodes.asked_of(B), 1);
    // It is on its way, and will be for long.
    let late = std::mem::take(&mut nodes.wires);
    nodes.event(A, Event::PeerAway(B));
    let (called_back, others): (VecDeque<_>, VecDeque<_>) =
        std::mem::take(&mut nodes.wires).into_iter().partition(|(_, to, _)| *to == B);
    nodes.wires = others;
    nodes.event(A, Event::Tick);
    nodes.settle();
    let at = nodes.grants_at();
    assert!(at.len() == 1 && at != [B], "{at:?}");
    nodes.wires.extend(late.into_iter().chain(called_back));
    nodes.event(A, Event::PeerBack(B));
    nodes.settle();
    assert!(nodes.grants().is_empty() && nodes.is_all_free(B), "it was called back");
}

/// what insists on it waits.
#[test]
fn what_must_be_there_waits_for_the_way() {
    let mut nodes = Nodes::new(&[4, 4]);
    nodes.event(A, Event::PeerAway(B));
    nodes.demand(1, affine(B), 1);
    nodes.tell_load(B, A);
    nodes.settle();
    assert!(nodes.grants().is_empty() && nodes.asked_of(B) == 0);
    let why = nodes.parts[&A].node.waiting().join("; ");
    assert!(why.contains("does not reach it"), "{why}");
    nodes.event(A, Event::PeerBack(B));
    nodes.settle();
    assert_eq!(nodes.grants_at(), [B]);
}

/// a lease that there is stays, and so does the node in the books.
#[test]
fn what_it_has_waits() {
    let mut nodes = Nodes::new(&[1, 2]);
    nodes.demand(1, affine(B), 1);
    nodes.settle();
    let [grant] = nodes.grants()[..] else { panic!("one") };
    nodes.event(A, Event::PeerAway(B));
    nodes.event(B, Event::PeerAway(A));
    assert!(!nodes.is_all_free(B));
    assert!(nodes.parts[&A].node.is_known_to_live(B), "the control service hears it");
    nodes.event(A, Event::PeerBack(B));
    nodes.event(B, Event::PeerBack(A));
    nodes.give_back(grant.lease);
    nodes.settle();
    assert!(nodes.is_all_free(B));
    // If that does not hear it either, it may be dead.
    let suspect = Load { suspect: true, ..nodes.parts[&B].node.load() };
    nodes.hear(A, from_control::Body::Loads(Loads { loads: vec![suspect] }));
    assert!(!nodes.parts[&A].node.is_known_to_live(B));
}

/// An actor of the driver at A that lives at B.
fn with_actor() -> Nodes {
    let mut nodes = Nodes::new(&[1, 2]);
    let create = CreateActor { actor: ACTOR.0.to_vec(), max_restarts: -1, ..Default::default() };
    let message = Some(to_node::Body::CreateActor(create).into());
    let said = OfProcess { process: DRIVER.0, message, ..OfProcess::default() };
    nodes.hear(B, from_control::Body::OfProcess(said));
    nodes.settle();
    let worker = nodes.parts[&B].node.actors[&ACTOR].worker().expect("it has one");
    let created = ActorCreated { actor: ACTOR.0.to_vec(), ..ActorCreated::default() };
    nodes.say(worker, to_node::Body::ActorCreated(created));
    nodes.settle();
    nodes
}

fn deaths_said_by_b(nodes: &Nodes) -> usize {
    let said = nodes.parts[&B].asked.to_control.iter();
    said.filter(|body| {
        matches!(body, to_control::Body::ActorNews(news) if news.phase() == ActorPhase::Dead)
    })
    .count()
}

///
#[test]
fn an_actor_outlives_the_connection_with_its_owner() {
    let mut nodes = with_actor();
    nodes.wires.clear();
    nodes.event(B, Event::PeerLost(A, "no way".into()));
    nodes.event(A, Event::PeerLost(B, "no way".into()));
    assert_eq!(deaths_said_by_b(&nodes), 0, "its owner lives");
    assert!(nodes.parts[&B].node.actors.contains_key(&ACTOR));
    nodes.settle();
    // And it ends with its owner all the same.
    nodes.event(
        A,
        Event::Ended { process: DRIVER, reason: "exit code 1".into(), last_lines: Vec::new() },
    );
    nodes.settle();
    assert_eq!(deaths_said_by_b(&nodes), 1);
}

/// whoever calls it hears that it lives, over a channel of which nothing is known.
#[test]
fn calls_end_though_nobody_says_what_became_of_them() {
    let mut nodes = with_actor();
    let states = |nodes: &mut Nodes| {
        nodes.take(A, |to, body| match body {
            Body::ActorState(state) if to == DRIVER => Some((state.phase(), state.process)),
            _ => None,
        })
    };
    let worker = nodes.parts[&B].node.actors[&ACTOR].worker().expect("it has one");
    assert_eq!(states(&mut nodes).last(), Some(&(ActorPhase::Alive, worker.0)));
    nodes.event(A, Event::PeerAway(B));
    nodes.event(A, Event::PeerLost(B, "no way".into()));
    assert!(states(&mut nodes).is_empty(), "it may have died with its node");
    nodes.event(A, Event::PeerLives(B));
    assert_eq!(states(&mut nodes), [(ActorPhase::Alive, worker.0)]);
}

/// it may have ended meanwhile.
#[test]
fn an_actor_ends_whose_owner_is_found_dead() {
    let mut nodes = with_actor();
    nodes.wires.clear();
    nodes.event(A, Event::PeerLost(B, "no way".into()));
    nodes.event(
        A,
        Event::Ended { process: DRIVER, reason: "exit code 1".into(), last_lines: Vec::new() },
    );
    nodes.wires.clear();
    nodes.event(B, Event::PeerLost(A, "no way".into()));
    assert_eq!(deaths_said_by_b(&nodes), 0, "nobody has said so");
    nodes.settle();
    assert_eq!(deaths_said_by_b(&nodes), 1);

    let mut nodes = with_actor();
    nodes.event(B, Event::PeerAway(A));
    nodes.event(B, Event::PeerLost(A, "no way".into()));
    assert!(nodes.wires.is_empty(), "nobody is there to be asked");
    nodes.event(B, Event::PeerBack(A));
    nodes.settle();
    assert_eq!(deaths_said_by_b(&nodes), 0, "it lives");
    nodes.lose(A);
    assert_eq!(deaths_said_by_b(&nodes), 1, "its owner's node has left");
}
