//! A control service on its own, spoken to by hand.

use oxiray_ids::{ActorId, JobId, ProcessId};
use oxiray_wire::cluster::{ActorNews, Join, NodeInfo, OfProcess, State, from_control, to_control};
use oxiray_wire::control::{
    Actor, ActorPhase, ActorState, Amount, CreateActor, Empty, Shape, Strategy, UNIT, from_node,
    to_node,
};

use super::world::{Asked, Store};
use crate::{Control, Event, Now, PeerId};

pub(super) const MS: u64 = 1_000_000;

pub(super) struct Bench {
    pub(super) control: Control,
    pub(super) store: Store,
    pub(super) now: Now,
}

impl Bench {
    pub(super) fn new() -> Self {
        let now = Now { ns: 5_000 * MS, wall_ms: 77 };
        let mut asked = Asked::default();
        let control = Control::new([3; 16], now, &mut asked);
        let mut store = Store::default();
        store.apply(asked.changes);
        Self { control, store, now }
    }

    pub(super) fn event(&mut self, event: Event) -> Asked {
        let mut asked = Asked::default();
        self.control.on_event(event, self.now, &mut asked);
        self.store.apply(std::mem::take(&mut asked.changes));
        asked
    }

    pub(super) fn say(&mut self, peer: u64, body: to_control::Body) -> Asked {
        self.event(Event::Message(PeerId(peer), body))
    }

    /// The process was killed and started again.
    pub(super) fn restart(&mut self) {
        let restored = Control::restore(self.store.records(), self.now);
        self.control = restored.expect("whole").expect("begun");
    }

    /// A node whose connection is `peer` joins, and becomes the next number.
    pub(super) fn join(&mut self, peer: u64) -> Asked {
        self.say(peer, to_control::Body::Join(join(peer)))
    }

    pub(super) fn of(&mut self, process: ProcessId, body: to_node::Body) -> Asked {
        let peer = u64::from(process.node());
        let message = Some(body.into());
        let said = OfProcess { process: process.0, message, ..OfProcess::default() };
        self.say(peer, to_control::Body::OfProcess(said))
    }

    pub(super) fn create(&mut self, create: CreateActor) -> Asked {
        let creator = ActorId::from_slice(&create.actor).expect("an id").creator();
        self.of(creator, to_node::Body::CreateActor(create))
    }

    pub(super) fn watch(&mut self, from: ProcessId, id: ActorId) -> Asked {
        let actor = Actor { actor: id.0.to_vec(), ..Actor::default() };
        self.of(from, to_node::Body::WatchActor(actor))
    }

    /// A process that has heard so much of an actor watches it again.
    pub(super) fn watch_after(
        &mut self,
        from: ProcessId,
        id: ActorId,
        (stay, restarts): (u32, u64),
    ) -> Asked {
        let actor = Actor { actor: id.0.to_vec(), ..Actor::default() };
        let message = Some(to_node::Body::WatchActor(actor).into());
        let said = OfProcess { process: from.0, message, stay, restarts, ..OfProcess::default() };
        self.say(u64::from(from.node()), to_control::Body::OfProcess(said))
    }

    pub(super) fn kill(&mut self, from: ProcessId, id: ActorId, no_restart: bool) -> Asked {
        let actor = Actor { actor: id.0.to_vec(), no_restart, ..Actor::default() };
        self.of(from, to_node::Body::KillActor(actor))
    }

    pub(super) fn news(&mut self, node: u64, id: ActorId, phase: ActorPhase, restarts: u64) {
        let stay = self.control.actors.get(&id).map_or(0, |actor| actor.record.stay);
        let mut news = ActorNews { actor: id.0.to_vec(), stay, restarts, ..ActorNews::default() };
        news.set_phase(phase);
        news.reason = "as it is".into();
        self.say(node, to_control::Body::ActorNews(news));
    }

    pub(super) fn see(&mut self) -> State {
        let asked = self.say(999, to_control::Body::See(Empty {}));
        match &asked.sent[..] {
            [(PeerId(999), from_control::Body::State(state))] => state.clone(),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn set_heads(&mut self, heads: &[String]) -> Asked {
        let mut asked = Asked::default();
        self.control.set_heads(heads.to_vec(), &mut asked);
        asked
    }

    pub(super) fn tick(&mut self, ms: u64) -> Asked {
        self.now.ns += ms * MS;
        self.event(Event::Tick)
    }
}

pub(super) fn join(peer: u64) -> Join {
    let cpus = vec![Amount { name: "CPU".into(), amount: 4 * UNIT }];
    let node = NodeInfo {
        id: vec![peer as u8; 28],
        address: format!("10.0.0.{peer}:1"),
        total: cpus.clone(),
        available: cpus,
        python: "3.11.4".into(),
        is_head: peer == 1,
        ..NodeInfo::default()
    };
    Join { node: Some(node), ..Join::default() }
}

pub(super) fn process(node: u32, number: u32) -> ProcessId {
    ProcessId::new(node, number)
}

pub(super) fn actor(creator: ProcessId, counter: u32) -> ActorId {
    ActorId::new(JobId([1; 4]), creator, counter)
}

pub(super) fn creation(id: ActorId, max_restarts: i64) -> CreateActor {
    let class_name = "Counter".into();
    CreateActor { actor: id.0.to_vec(), class_name, max_restarts, ..CreateActor::default() }
}

pub(super) fn needs(name: &str, amount: u64) -> Option<Shape> {
    let resources = vec![Amount { name: name.into(), amount: amount * UNIT }];
    Some(Shape { resources, ..Shape::default() })
}

pub(super) fn on_node(id: u8) -> Option<Shape> {
    let strategy = Some(Strategy { node: vec![id; 28], ..Strategy::default() });
    Some(Shape { strategy, ..Shape::default() })
}

impl Asked {
    /// What was said to a connection.
    pub(super) fn to(&self, peer: u64) -> Vec<&from_control::Body> {
        let to = self.sent.iter().filter(|(to, _)| to.0 == peer);
        to.map(|(_, body)| body).collect()
    }

    /// The text of the refusal that a connection was sent.
    pub(super) fn refusal(&self, peer: u64) -> &str {
        let refusal = self.to(peer).into_iter().find_map(|body| match body {
            from_control::Body::Refused(text) => Some(&text.text[..]),
            _ => None,
        });
        refusal.expect("a refusal")
    }

    /// States of actors that a process was told.
    pub(super) fn states(&self, process: ProcessId) -> Vec<&ActorState> {
        let mut states = Vec::new();
        for (_, body) in &self.sent {
            if let from_control::Body::ForProcess(said) = body
                && said.process == process.0
                && let Some(message) = &said.message
                && let Some(from_node::Body::ActorState(state)) = &message.body
            {
                states.push(state);
            }
        }
        states
    }

    /// What was passed on to a node: of whom, what, and how often it was started before.
    pub(super) fn passed_on(&self, peer: u64) -> Vec<(ProcessId, &to_node::Body, u64)> {
        let mut passed = Vec::new();
        for body in self.to(peer) {
            if let from_control::Body::OfProcess(said) = body
                && let Some(message) = said.message.as_ref().and_then(|said| said.body.as_ref())
            {
                passed.push((ProcessId(said.process), message, said.restarts));
            }
        }
        passed
    }

    /// Where an actor was sent to be made.
    pub(super) fn made_at(&self) -> Option<u64> {
        let creates = |body: &from_control::Body| match body {
            from_control::Body::OfProcess(said) => said
                .message
                .as_ref()
                .is_some_and(|message| matches!(message.body, Some(to_node::Body::CreateActor(_)))),
            _ => false,
        };
        self.sent.iter().find(|(_, body)| creates(body)).map(|(peer, _)| peer.0)
    }
}
