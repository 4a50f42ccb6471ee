//! Whatever other processes and the node say, in any order and about anything: an owner does not
//! panic, and its invariants hold.

use oxiray_ids::{
    ActorId, FunctionId, JobId, ObjectId, Origin, PUT_INDEX, ProcessId, StoreKey, TaskId,
};
use oxiray_wire::control::MemoryEnd;
use oxiray_wire::frame::{
    self, Answer, Body, FailureCode, Frame, Outcome, RefName, Returns, Value, Yield,
};
use proptest::prelude::*;

use crate::object::{Content, Failure, ObjectKey};
use crate::owner::{Outbox, Owner};
use crate::task::{CallOrder, Target, TaskSpec};
use crate::{ActorEnd, Attempt, Change, Next};

const HERE: ProcessId = ProcessId(0);
const JOB: JobId = JobId([1; 4]);
const SHAPES: u32 = 2;

/// Remembers what a worker must know to answer.
#[derive(Default)]
pub(super) struct Ears {
    pub(super) tokens: Vec<u64>,
    numbers: u64,
    takes_back: bool,
}

impl Outbox for Ears {
    fn push_task(&mut self, _: ProcessId, task: frame::Task<'_>, claimable: bool) -> u64 {
        self.tokens.push(task.token);
        self.numbers += u64::from(claimable);
        self.numbers
    }
    fn take_back(&mut self, _: ProcessId, _: u64) -> bool {
        self.takes_back
    }
    fn send(&mut self, _: ProcessId, _: &Frame<'_>) {}
    fn set_demand(&mut self, _: u32, _: u64, _: &str) {}
    fn return_lease(&mut self, _: u64) {}
    fn near_shape(&mut self, _: u32, _: u32) {}
    fn take_stored(&mut self, _: Origin) {}
    fn free_stored(&mut self, _: Origin) {}
    fn task_changed(&mut self, _: Attempt, _: Change<'_>) {}
    fn object_ready(&mut self, _: ObjectKey) {}
    fn create_actor(&mut self, _: ActorId, constructor: frame::Task<'_>) {
        self.tokens.push(constructor.token);
    }
    fn kill_actor(&mut self, _: ActorId, _: &str) {}
    fn release_name(&mut self, _: ActorId) {}
    fn unhandled(&mut self, _: std::sync::Arc<Failure>) {}
}

/// Small numbers stand for everything: few processes, objects, actors, so that they meet.
#[derive(Clone, Copy, Debug)]
enum Said {
    Put,
    Submit { argument: usize, retries: i32, returns: u32, kind: u32 },
    Drop(usize),
    Free(usize),
    Want(usize),
    Answer { peer: u64, token: usize, values: usize, kind: u32 },
    Yield { peer: u64, token: usize, item: u32, kind: u32 },
    Read { at: usize, what: u32 },
    Object { id: u32, kind: u32 },
    Entrusted { peer: u64, id: u32, kind: u32 },
    About { peer: u64, id: u32, what: u32 },
    Token { peer: u64, token: usize, what: u32 },
    Node { what: u32, number: u64 },
    Actor { actor: u32, peer: u64, what: u32 },
    Tick(u64),
}

fn said() -> impl Strategy<Value = Said> {
    let (peer, at, id, what) = (|| 0..4u64, || 0..6usize, || 0..8u32, || 0..8u32);
    let submitted = (at(), -1..3i32, 0..3u32, what());
    prop_oneof![
        2 => Just(Said::Put),
        6 => submitted.prop_map(|(argument, retries, returns, kind)| {
            Said::Submit { argument, retries, returns, kind }
        }),
        3 => at().prop_map(Said::Drop),
        1 => at().prop_map(Said::Free),
        2 => at().prop_map(Said::Want),
        6 => (peer(), at(), 0..3usize, what())
            .prop_map(|(peer, token, values, kind)| Said::Answer { peer, token, values, kind }),
        6 => (peer(), at(), prop_oneof![0..4u32, Just(u32::MAX)], what())
            .prop_map(|(peer, token, item, kind)| Said::Yield { peer, token, item, kind }),
        4 => (at(), what()).prop_map(|(at, what)| Said::Read { at, what }),
        2 => (id(), what()).prop_map(|(id, kind)| Said::Object { id, kind }),
        2 => (peer(), id(), what()).prop_map(|(peer, id, kind)| Said::Entrusted { peer, id, kind }),
        6 => (peer(), id(), what()).prop_map(|(peer, id, what)| Said::About { peer, id, what }),
        3 => (peer(), at(), what()).prop_map(|(peer, token, what)| Said::Token { peer, token, what }),
        8 => (what(), peer()).prop_map(|(what, number)| Said::Node { what, number }),
        4 => (0..3u32, peer(), what()).prop_map(|(actor, peer, what)| Said::Actor { actor, peer, what }),
        2 => (1..200_000_000u64).prop_map(Said::Tick),
    ]
}

/// Three are on our node, the fourth is not.
fn process(peer: u64) -> ProcessId {
    if peer == 3 { ProcessId::new(1, 7) } else { ProcessId(peer) }
}

fn actor(number: u32) -> ActorId {
    ActorId::new(JOB, process(u64::from(number)), number)
}

struct Victim {
    owner: Owner,
    ears: Ears,
    refs: Vec<ObjectKey>,
    /// Of our own tasks and values, and of others'.
    ids: Vec<ObjectId>,
    streams: Vec<TaskId>,
    counter: u64,
}

impl Victim {
    fn new() -> Self {
        let mut owner = Owner::new(HERE);
        (0..SHAPES).for_each(|_| _ = owner.shape());
        owner.function();
        let foreign = (1..4).map(|n| TaskId::new(ActorId::home(JOB, process(n)), process(n), 1));
        let ids = foreign.map(|task| task.object(1)).collect();
        Self {
            owner,
            ears: Ears::default(),
            refs: Vec::new(),
            ids,
            streams: Vec::new(),
            counter: 0,
        }
    }

    fn id(&self, at: u32) -> ObjectId {
        self.ids[self.ids.len() - 1 - at as usize % self.ids.len()]
    }

    fn token(&self, at: usize) -> u64 {
        let tokens = &self.ears.tokens;
        tokens.len().checked_sub(1 + at).map_or(at as u64, |at| tokens[at])
    }

    fn named(&self, at: u32) -> RefName {
        RefName { id: self.id(at), owner: process(u64::from(at % 4)) }
    }

    fn hears(&mut self, said: Said) {
        let body = |kind: u32| match kind % 4 {
            0 => Body::Inline(b"value"),
            1 => {
                Body::Stored { origin: Origin { node: kind % 2, key: StoreKey(u64::MAX) }, len: 9 }
            }
            2 => Body::Stored { origin: Origin { node: 1, key: StoreKey(3) }, len: 1 << 40 },
            _ => Body::Failed { code: FailureCode::TaskError, message: "no", data: &[] },
        };
        let named = self.named(4);
        let value = |kind: u32| Value {
            body: body(kind),
            contained: if kind > 3 { vec![named, named] } else { Vec::new() },
        };
        match said {
            Said::Put => {
                self.counter += 1;
                let id =
                    TaskId::new(ActorId::home(JOB, HERE), HERE, self.counter).object(PUT_INDEX);
                self.ids.push(id);
                let key = self.owner.put(id, Content::Inline(b"own".as_slice().into()), Vec::new());
                self.refs.push(key);
            }
            Said::Submit { argument, retries, returns, kind } => {
                self.submit(argument, retries, returns, kind);
            }
            Said::Drop(at) => {
                if !self.refs.is_empty() {
                    let key = self.refs.swap_remove(at % self.refs.len());
                    self.owner.drop_ref(key, &mut self.ears);
                }
            }
            Said::Free(at) | Said::Want(at) => {
                if let Some(key) = self.refs.get(at).copied() {
                    match said {
                        Said::Free(_) => self.owner.free_value(key, &mut self.ears),
                        _ => self.owner.ask_again(key, &mut self.ears),
                    }
                }
            }
            Said::Answer { peer, token, values, kind } => {
                let outcome = match kind % 4 {
                    0 => Outcome::Raised,
                    1 => Outcome::Retryable,
                    2 => Outcome::Unread,
                    _ => Outcome::Done,
                };
                let answer = Answer {
                    token: self.token(token),
                    outcome,
                    ran_ns: u64::MAX,
                    values: (0..values).map(|_| value(kind)).collect(),
                    retained: vec![self.id(kind), self.id(0)],
                };
                self.owner.on_answer(process(peer), answer, &mut self.ears);
            }
            Said::Yield { peer, token, item, kind } => {
                let given = Yield { token: self.token(token), item, value: value(kind) };
                self.owner.on_yield(process(peer), given, &mut self.ears);
            }
            Said::Read { at, what } => self.reads(at, what),
            Said::Object { id, kind } => {
                self.owner.on_object(self.id(id), value(kind), &mut self.ears);
            }
            Said::Entrusted { peer, id, kind } => {
                let (peer, id) = (process(peer), self.id(id));
                self.owner.on_entrusted(peer, id, value(kind), &mut self.ears);
            }
            Said::About { peer, id, what } => self.hears_of(process(peer), id, what),
            Said::Token { peer, token, what } => {
                let (peer, token) = (process(peer), self.token(token));
                let Self { owner, ears, .. } = self;
                match what % 6 {
                    0 => owner.on_settled_args(peer, token, ears),
                    1 => owner.on_settled_returns(peer, token, what / 4, ears),
                    2 => owner.on_taken_back(peer, token % 8, ears),
                    3 => owner.on_blocked(peer, ears),
                    4 => owner.on_channel(peer),
                    _ => owner.on_unblocked(peer, ears),
                }
            }
            Said::Node { what, number } => self.hears_of_node(what, number),
            Said::Actor { actor: number, peer, what } => {
                let end = || ActorEnd {
                    reason: "so".into(),
                    creation_error: vec![what as u8],
                    ..ActorEnd::default()
                };
                let Self { owner, ears, .. } = self;
                let incarnation = u64::from(what / 3 % 4);
                match what % 3 {
                    0 => owner.on_actor_alive(actor(number), process(peer), incarnation, ears),
                    1 => owner.on_actor_restarting(actor(number), incarnation, "so", ears),
                    _ => owner.on_actor_dead(actor(number), incarnation, end(), ears),
                }
            }
            Said::Tick(ns) => {
                self.owner.now += ns;
                self.ears.takes_back = ns % 2 == 0;
                self.owner.on_tick(&mut self.ears);
            }
        }
    }

    fn submit(&mut self, argument: usize, retries: i32, returns: u32, kind: u32) {
        self.counter += 1;
        let number = kind % 3;
        let orders = [CallOrder::All, CallOrder::Lane, CallOrder::Free];
        let (home, target) = match kind {
            0..3 => {
                let shape = kind % SHAPES;
                let target = Target::Function { function: FunctionId([1; 16]), stats: 0, shape };
                (ActorId::home(JOB, HERE), target)
            }
            3 => {
                let id = ActorId::new(JOB, HERE, 100 + self.counter as u32);
                (id, Target::Constructor { actor: id, class: FunctionId([2; 16]) })
            }
            _ => (
                actor(number),
                Target::Method {
                    actor: actor(number),
                    lane: 0,
                    order: orders[kind as usize % 3],
                    variant: FunctionId::NIL,
                },
            ),
        };
        let mut handle = None;
        if let Target::Constructor { actor, .. } = target {
            let key = self.owner.new_actor(actor, returns == 0);
            self.refs.push(key);
        } else if let Target::Method { actor, .. } = target {
            self.owner.meet_actor(actor);
            let id = crate::actor::handle_object(actor);
            let name = RefName { id, owner: actor.creator() };
            handle = Some(self.owner.read_ref(name, &mut self.ears));
        }
        let is_constructor = matches!(target, Target::Constructor { .. });
        let has_value = |key: &&ObjectKey| self.owner.id_of(**key).index() != 0;
        let refs: Vec<ObjectKey> =
            self.refs.get(argument).filter(has_value).into_iter().copied().collect();
        refs.iter().for_each(|key| self.owner.add_ref(*key));
        let id = TaskId::new(home, HERE, self.counter);
        let spec = TaskSpec {
            id,
            target,
            name: "".into(),
            returns: match (is_constructor, argument) {
                (true, _) => Returns::Fixed(0),
                (false, 0) => Returns::Stream { ahead: returns },
                (false, 1) => Returns::Gathered,
                (false, _) => Returns::Fixed(returns),
            },
            args: Default::default(),
            refs: refs.into(),
            nested: Default::default(),
            handle,
            retries,
            attempt: 0,
            recorded: true,
            parent: TaskId::NIL,
        };
        if let Returns::Stream { .. } = spec.returns {
            self.streams.push(id);
        }
        let keys = self.owner.submit(spec, &mut self.ears);
        for key in keys {
            self.owner.name(key);
            self.ids.push(self.owner.id_of(key));
            self.refs.push(key);
        }
    }

    /// What a reader of our own does with the streams that there were.
    fn reads(&mut self, at: usize, what: u32) {
        let Some(task) = at.checked_rem(self.streams.len()).map(|at| self.streams[at]) else {
            return;
        };
        let Self { owner, ears, refs, .. } = self;
        match what % 4 {
            0 => owner.drop_reader(task, ears),
            1 => refs.extend(owner.peek(task, at, ears)),
            _ => {
                if let Next::Item(key) = owner.next_item(task, ears) {
                    refs.push(key);
                }
            }
        }
    }

    fn hears_of(&mut self, peer: ProcessId, id: u32, what: u32) {
        let name = self.named(id);
        let id = self.id(id);
        let Self { owner, ears, refs, .. } = self;
        match what {
            0 => owner.on_want(peer, id, ears),
            1 => owner.on_borrow(peer, id, ears),
            2 => owner.on_borrowed(id, ears),
            3 => owner.on_release(peer, id, ears),
            4 => owner.on_free(id, ears),
            5 => refs.push(owner.adopt(name)),
            6 => refs.push(owner.read_ref(name, ears)),
            _ => {
                let held = owner.begin_task([name, name].into_iter());
                owner.end_task(peer, u64::from(what), held, ears);
            }
        }
    }

    fn hears_of_node(&mut self, what: u32, number: u64) {
        let Self { owner, ears, .. } = self;
        match what {
            0..4 => {
                let shape = if what == 3 { u32::MAX } else { what };
                owner.on_granted(shape, number, process(number), vec![7], ears);
            }
            4 => owner.on_reclaim(ears),
            5 => owner.on_unschedulable(number as u32, FailureCode::Environment, "no", ears),
            6 => owner.on_node_lost(number as u32 % 2, "gone", ears),
            // That we have died ourselves nobody can say.
            _ if number == 0 => {}
            _ => {
                let memory = MemoryEnd::try_from(number as i32 % 4).expect("one of four");
                owner.on_process_died(process(number), memory, "gone", ears);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_is_said_ends_the_process(all in prop::collection::vec(said(), 1..200)) {
        let mut victim = Victim::new();
        for said in all {
            victim.hears(said);
            victim.owner.validate();
        }
    }
}
