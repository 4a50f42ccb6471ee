//! The control service goes away and comes back: U-1, U-2, D-1.

use oxiray_wire::cluster::{Heads, Kv, OfProcess, Ping};
use oxiray_wire::control::{ActorCreated, ActorPhase, CreateActor, NamedActor, Text};

use super::*;

const MILLISECOND: u64 = SECOND / 1000;

impl Nodes {
    /// What A has said to the control service since the last time, but for its load.
    fn said(&mut self) -> Vec<to_control::Body> {
        let said = std::mem::take(&mut self.parts.get_mut(&A).expect("is there").asked.to_control);
        said.into_iter().filter(|body| !matches!(body, to_control::Body::Load(_))).collect()
    }

    fn dials(&mut self) -> Vec<Join> {
        std::mem::take(&mut self.parts.get_mut(&A).expect("is there").asked.dialled)
    }

    fn pass(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
        self.event(A, Event::Tick);
    }

    fn ask_kv(&mut self, key: &str) {
        let question = Kv { key: key.into(), ..Kv::default() };
        self.say(DRIVER, to_node::Body::Kv(question));
    }

    fn ask_name(&mut self, request: u64) {
        let actor = vec![request as u8; 16];
        let asked = NamedActor { request, name: "boss".into(), actor, ..NamedActor::default() };
        self.say(DRIVER, to_node::Body::NameActor(asked));
    }

    /// An actor whose worker is there.
    fn make_actor(&mut self) -> ProcessId {
        let create = CreateActor { actor: vec![9; 16], ..CreateActor::default() };
        let message = Some(to_node::Body::CreateActor(create).into());
        let said = OfProcess { process: DRIVER.0, message, ..OfProcess::default() };
        self.hear(A, from_control::Body::OfProcess(said));
        self.settle();
        let worker = self.parts[&A].node.actors.values().next().and_then(|actor| actor.worker());
        let worker = worker.expect("it has one");
        let created = ActorCreated { actor: vec![9; 16], ..ActorCreated::default() };
        self.say(worker, to_node::Body::ActorCreated(created));
        worker
    }
}

fn keys(said: &[to_control::Body]) -> Vec<String> {
    let key = |body: &to_control::Body| match body {
        to_control::Body::Kv(kv) => Some(String::from_utf8(kv.key.clone()).expect("text")),
        _ => None,
    };
    said.iter().filter_map(key).collect()
}

#[test]
fn what_is_said_while_it_is_away_is_said_when_it_is_back() {
    let mut nodes = Nodes::new(&[1, 1]);
    nodes.said();
    nodes.event(A, Event::ControlLost);
    nodes.ask_kv("a");
    nodes.ask_kv("b");
    assert!(nodes.said().is_empty() && nodes.dials().is_empty(), "U-1: not at once");
    nodes.pass(100 * MILLISECOND);
    let [join] = &nodes.dials()[..] else { panic!() };
    assert_eq!(join.jobs.len(), 1, "it says what runs");
    assert!(join.processes.contains(&DRIVER.0));
    nodes.ask_kv("c");
    assert!(nodes.said().is_empty(), "U-1: nothing before the answer");
    let both = vec![info(A, 1), info(B, 1)];
    nodes.hear(A, from_control::Body::Welcome(Welcome { nodes: both, ..Welcome::default() }));
    let said = nodes.said();
    assert_eq!(keys(&said)[..3], ["a", "b", "c"], "U-2: in order");
    assert_eq!(nodes.parts[&A].node.nodes(), [B], "what was known still is");
}

/// U-3: also of what was asked before it went away.
#[test]
fn a_name_that_is_asked_for_while_it_is_away_is_asked_for_once() {
    let mut nodes = Nodes::new(&[1]);
    nodes.ask_name(1);
    nodes.event(A, Event::ControlLost);
    nodes.said();
    nodes.ask_name(2);
    nodes.pass(100 * MILLISECOND);
    nodes.ask_name(3);
    let nodes_there = vec![info(A, 1)];
    nodes
        .hear(A, from_control::Body::Welcome(Welcome { nodes: nodes_there, ..Welcome::default() }));
    let asked = nodes.said().into_iter().filter_map(|body| match body {
        to_control::Body::OfProcess(said) => match said.message?.body? {
            to_node::Body::NameActor(asked) => Some(asked.request),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn who_left_meanwhile_has_left_and_who_came_has_come() {
    let mut nodes = Nodes::new(&[1, 1]);
    nodes.event(A, Event::ControlLost);
    nodes.pass(SECOND);
    let others = vec![info(A, 1), info(C, 1)];
    nodes.hear(A, from_control::Body::Welcome(Welcome { nodes: others, ..Welcome::default() }));
    assert_eq!(nodes.parts[&A].node.nodes(), [C]);
}

#[test]
fn one_that_says_nothing_is_dialled_again_and_given_up_after_a_minute() {
    let mut nodes = Nodes::new(&[1]);
    nodes.hear(A, from_control::Body::Ping(Ping::default()));
    assert!(matches!(nodes.said().last(), Some(to_control::Body::Pong(_))));
    nodes.pass(4900 * MILLISECOND);
    assert!(nodes.dials().is_empty());
    nodes.pass(100 * MILLISECOND);
    assert_eq!(nodes.dials().len(), 1, "after five seconds of silence");
    nodes.pass(1900 * MILLISECOND);
    assert!(nodes.dials().is_empty(), "it has two seconds to answer");
    nodes.pass(100 * MILLISECOND);
    assert_eq!(nodes.dials().len(), 1);
    for _ in 0..57 {
        nodes.event(A, Event::ControlLost);
        nodes.pass(SECOND);
        assert_eq!(nodes.dials().len(), 1);
    }
    assert_eq!(nodes.parts[&A].asked.excluded, None);
    nodes.pass(2 * SECOND);
    let why = nodes.parts[&A].asked.excluded.as_deref();
    assert_eq!(why, Some("the control service has been away for 60 s"));
}

#[test]
fn where_others_wait_it_is_looked_for_sooner_and_as_long_as_one_waits() {
    let mut nodes = Nodes::new(&[1]);
    let heads = |count: usize| Heads { addresses: vec!["10.0.0.1:1".into(); count] };
    nodes.hear(A, from_control::Body::Heads(heads(2)));
    nodes.pass(1400 * MILLISECOND);
    assert!(nodes.dials().is_empty());
    nodes.pass(100 * MILLISECOND);
    assert_eq!(nodes.dials().len(), 1, "after a second and a half of silence");
    // Those that wait say so for longer than a control service may be away.
    for _ in 0..700 {
        nodes.hear(A, from_control::Body::Standby(heads(2)));
        nodes.pass(100 * MILLISECOND);
        assert_eq!(nodes.dials().len(), 1, "another is asked soon");
    }
    assert_eq!(nodes.parts[&A].asked.excluded, None);
    // Nobody is left.
    for _ in 0..60 {
        nodes.event(A, Event::ControlLost);
        nodes.pass(SECOND);
    }
    assert!(nodes.parts[&A].asked.excluded.is_some());
}

#[test]
fn one_that_refuses_ends_the_node() {
    let mut nodes = Nodes::new(&[1]);
    nodes.hear(A, from_control::Body::Refused(Text { text: "because".into() }));
    assert_eq!(nodes.parts[&A].asked.excluded.as_deref(), Some("because"));
}

#[test]
fn one_that_gave_the_node_up_has_it_join_again() {
    let mut nodes = Nodes::new(&[1]);
    nodes.hear(A, from_control::Body::GivenUp(Text { text: "silence".into() }));
    let asked = &nodes.parts[&A].asked;
    assert_eq!((asked.rejoins.as_deref(), &asked.excluded), (Some("silence"), &None));
}

#[test]
fn a_death_is_told_until_the_control_service_has_it() {
    let mut nodes = Nodes::new(&[1]);
    let worker = nodes.make_actor();
    nodes.event(A, Event::ControlLost);
    let (reason, last_lines) = ("exit code 1".to_owned(), Vec::new());
    nodes.event(A, Event::Ended { process: worker, reason, last_lines });
    let deaths = |nodes: &mut Nodes| {
        let said = nodes.said();
        let is_death = |body: &&to_control::Body| matches!(body, to_control::Body::ActorNews(news) if news.phase() == ActorPhase::Dead);
        said.iter().filter(is_death).count()
    };
    assert_eq!(deaths(&mut nodes), 0);
    nodes.pass(SECOND);
    nodes.hear(
        A,
        from_control::Body::Welcome(Welcome { nodes: vec![info(A, 1)], ..Welcome::default() }),
    );
    assert!(deaths(&mut nodes) >= 1, "D-1");
    // It had not heard of the death, and wants the actor made again.
    let create = CreateActor { actor: vec![9; 16], ..CreateActor::default() };
    let message = Some(to_node::Body::CreateActor(create).into());
    let said = OfProcess { process: DRIVER.0, message, ..OfProcess::default() };
    nodes.hear(A, from_control::Body::OfProcess(said));
    assert_eq!(deaths(&mut nodes), 1, "D-1: it is dead");
    assert!(nodes.parts[&A].node.actors.is_empty());
    nodes.hear(A, from_control::Body::ActorBuried(vec![9; 16]));
    assert!(nodes.parts[&A].node.deaths.is_empty());
}

#[test]
fn loads_are_told_when_they_change_and_at_times_when_there_are_others() {
    let mut nodes = Nodes::new(&[1, 1]);
    let loads = |nodes: &mut Nodes| {
        let asked = &mut nodes.parts.get_mut(&A).expect("is there").asked;
        let said = std::mem::take(&mut asked.to_control);
        said.iter().filter(|body| matches!(body, to_control::Body::Load(_))).count()
    };
    nodes.pass(20 * MILLISECOND);
    loads(&mut nodes);
    nodes.pass(20 * MILLISECOND);
    assert_eq!(loads(&mut nodes), 0, "nothing has changed");
    nodes.demand(1, cpus(1), 1);
    nodes.settle();
    nodes.pass(20 * MILLISECOND);
    assert_eq!(loads(&mut nodes), 1);
    nodes.pass(SECOND);
    assert_eq!(loads(&mut nodes), 1, "somebody may have believed something else");
    nodes.lose(B);
    nodes.pass(20 * MILLISECOND);
    loads(&mut nodes);
    nodes.hear(A, from_control::Body::Ping(Ping::default()));
    nodes.pass(SECOND);
    assert_eq!(loads(&mut nodes), 0, "there is nobody else");
}
