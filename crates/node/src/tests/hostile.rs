//! Whatever processes, other nodes, the control service and the disk say, in any order and about
//! anything: a node does not panic, its invariants hold (N-1 to N-9), and nothing is kept for those
//! that are gone.

mod shape_of;

use std::sync::LazyLock;

use oxiray_ids::{ActorId, GroupId, JobId, NodeId, ProcessId, StoreKey};
use oxiray_store::{Extent, Refusal, TABLE_BYTES, Table};
use oxiray_sys::memory::memory_file;
use oxiray_wire::cluster::{
    BetweenNodes, FromControl, Join, NodeInfo, Tokens, Welcome, from_control, to_control,
};
use oxiray_wire::control::from_node::Body;
use oxiray_wire::control::{JobConfig, ProcessKind, ReadFile, SetDemand, ToNode, to_node};
use proptest::prelude::*;

use self::shape_of::{Dice, Schema};
use super::bed::{SECOND, shape};
use crate::demand::LeaseId;
use crate::event::{DiskNews, Endpoint, Event, Outbox, Setup, Transfer};
use crate::node::Node;

const HERE: u32 = 1;
const OTHERS: [u32; 2] = [2, 3];

static SAID: LazyLock<[Schema; 3]> = LazyLock::new(|| {
    [Schema::of::<ToNode>(), Schema::of::<BetweenNodes>(), Schema::of::<FromControl>()]
});

/// Numbers of processes, leases and slots that there may be.
static NUMBERS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let processes = [HERE, 2, 3]
        .into_iter()
        .flat_map(|node| (0..8).map(move |number| ProcessId::new(node, number).0));
    let leases = [HERE, 2]
        .into_iter()
        .flat_map(|node| (1..6).map(move |lease| LeaseId::first_of(node) + lease));
    let keys = (0..4).map(|slot| StoreKey::new(slot, 1).0);
    processes.chain(leases).chain(keys).collect()
});

static NAMES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let job = JobId([1; 4]);
    let home = |number| ProcessId::new(HERE, number);
    let actors = (1..4).map(|n| ActorId::new(job, home(n), n).0.to_vec());
    let groups = (1..4).map(|n| GroupId::new(job, home(n), n).0.to_vec());
    let nodes = (1..4).map(|n| NodeId([n; 28]).0.to_vec());
    let odd = [Vec::new(), vec![0; 3], vec![0; 16], job.0.to_vec()];
    actors.chain(groups).chain(nodes).chain(odd).collect()
});

const TEXTS: [&str; 8] = ["", "CPU", "GPU", "mine", "{}", "CPU_group_1", "a\u{fc}", "7"];

/// One thing that happens, of which `seed` says the rest.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A process, a node or the control service says something, whatever it may be.
    Process(u64),
    Peer(u64),
    Control(u64),
    /// What happens to a node that is well.
    Arrives(u64),
    Demands(u64),
    Ends(u64),
    /// The shell has done what it was asked for, or has not.
    Done(u64),
    Joins(u64),
    Leaves(u64),
    Frame(u64),
    Tick(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let any = any::<u64>;
    prop_oneof![
        12 => any().prop_map(Step::Process),
        8 => any().prop_map(Step::Peer),
        6 => any().prop_map(Step::Control),
        4 => any().prop_map(Step::Arrives),
        4 => any().prop_map(Step::Demands),
        3 => any().prop_map(Step::Ends),
        4 => any().prop_map(Step::Done),
        2 => any().prop_map(Step::Joins),
        1 => any().prop_map(Step::Leaves),
        1 => any().prop_map(Step::Frame),
        3 => any().prop_map(Step::Tick),
    ]
}

/// What a node asked its shell for.
#[derive(Default)]
struct Asked {
    starts: Vec<u32>,
    templates: Vec<u32>,
    killed: Vec<ProcessId>,
    spilling: Vec<StoreKey>,
    restoring: Vec<StoreKey>,
    transfers: Vec<StoreKey>,
    dialled: bool,
}

impl Outbox for Asked {
    fn send(&mut self, _: ProcessId, _: Body) {}
    fn open_channel(&mut self, ends: [Endpoint; 2]) {
        assert_ne!(ends[0].process, ends[1].process);
    }
    fn start_worker(&mut self, environment: u32) {
        self.starts.push(environment);
    }
    fn make_template(&mut self, environment: u32, _: &str) {
        self.templates.push(environment);
    }
    fn end_template(&mut self, _: u32) {}
    fn kill(&mut self, process: ProcessId) {
        self.killed.push(process);
    }
    fn spill(&mut self, batch: Vec<(StoreKey, Extent)>) {
        self.spilling.extend(batch.into_iter().map(|(key, _)| key));
    }
    fn restore(&mut self, key: StoreKey, _: Extent) {
        self.restoring.push(key);
    }
    fn forget_copy(&mut self, _: StoreKey) {}
    fn tell_user(&mut self, _: String) {}
    fn tell_peer(&mut self, _: u32, _: BetweenNodes) {}
    fn tell_control(&mut self, _: to_control::Body) {}
    fn dial_control(&mut self, _: Join) {
        self.dialled = true;
    }
    fn add_node(&mut self, _: &NodeInfo) {}
    fn remove_node(&mut self, _: u32) {}
    fn change_tokens(&mut self, _: Tokens) {}
    fn leave(&mut self, _: String) {}
    fn exclude(&mut self, _: String) {}
    fn rejoin(&mut self, _: String) {}
    fn close_channel(&mut self, _: ProcessId, _: ProcessId) {}
    fn transfer(&mut self, transfer: Transfer) {
        self.transfers.push(transfer.key);
    }
    fn lend(&mut self, _: u64, _: Extent) {}
    fn end_lending(&mut self, _: u64) {}
    fn read_file(&mut self, _: ProcessId, _: ReadFile) {}
    fn shut_down(&mut self, _: bool) {}
}

fn info(number: u32) -> NodeInfo {
    let total = shape(&[("CPU", 3), ("GPU", 1), ("mine", 1)]).resources;
    NodeInfo {
        number,
        id: vec![number as u8; 28],
        available: total.clone(),
        total,
        ..NodeInfo::default()
    }
}

struct Victim {
    node: Node,
    asked: Asked,
    now: u64,
}

impl Victim {
    fn new() -> Self {
        let setup = Setup {
            resources: info(HERE).total,
            store_size: 1 << 20,
            store_patience: SECOND,
            prestart_workers: 1,
            max_starting: 3,
            max_processes: 12,
            limited_by: String::new(),
            clock_began_ns: 0,
            job: None,
            member: info(HERE),
            alone: false,
            asked_at: 0,
        };
        let table = memory_file("table", TABLE_BYTES).and_then(Table::map).expect("memory");
        let node = Node::new(setup, table);
        let mut victim = Self { node, asked: Asked::default(), now: SECOND };
        let nodes = vec![info(HERE), info(OTHERS[0])];
        let (heads, lease_ms) = (vec![], 700);
        let welcome = Welcome { number: HERE, cluster: vec![1; 16], nodes, heads, lease_ms };
        victim.hears(Event::FromControl(from_control::Body::Welcome(welcome)));
        victim.arrives(ProcessKind::Driver, 0);
        victim
    }

    fn hears(&mut self, event: Event) {
        self.node.on_event(event, self.now, &mut self.asked);
        self.node.validate();
    }

    fn arrives(&mut self, kind: ProcessKind, environment: u32) {
        if let Ok(admitted) = self.node.admit(kind, 1000, JobConfig::default(), environment) {
            self.hears(Event::Ready(admitted.process));
        }
    }

    /// One of those that there are, or any.
    fn process(&self, dice: &mut Dice<'_>) -> ProcessId {
        let there = self.node.processes.len();
        match dice.below(there + 1) {
            at if at < there => *self.node.processes.keys().nth(at).expect("is there"),
            _ => ProcessId::new(dice.below(4) as u32, dice.below(8) as u32),
        }
    }

    fn takes(&mut self, step: Step) {
        let dice = |state| Dice { state, numbers: &NUMBERS, texts: &TEXTS, names: &NAMES };
        match step {
            Step::Process(seed) => {
                let dice = &mut dice(seed);
                let (from, at) = (self.process(dice), dice.below(SAID[0].bodies()));
                let said: ToNode = SAID[0].message(at, dice);
                // Those of other nodes speak by way of these.
                if let Some(body) = said.body.filter(|_| from.node() == HERE) {
                    self.hears(Event::Message(from, body));
                }
            }
            Step::Peer(seed) => {
                let dice = &mut dice(seed);
                let at = dice.below(SAID[1].bodies());
                let said: BetweenNodes = SAID[1].message(at, dice);
                let node = OTHERS[dice.below(OTHERS.len())];
                if let Some(body) = said.body {
                    self.hears(Event::FromPeer(node, body));
                }
            }
            Step::Control(seed) => {
                let dice = &mut dice(seed);
                let at = dice.below(SAID[2].bodies());
                let said: FromControl = SAID[2].message(at, dice);
                if let Some(body) = said.body {
                    self.hears(Event::FromControl(body));
                }
            }
            Step::Arrives(seed) => {
                let kinds = [ProcessKind::Driver, ProcessKind::Worker, ProcessKind::Observer];
                match self.asked.starts.pop() {
                    Some(environment) if seed % 8 == 0 => {
                        let reason = "no reason".into();
                        self.hears(Event::StartFailed { environment, reason });
                    }
                    Some(environment) => self.arrives(ProcessKind::Worker, environment),
                    None => self.arrives(kinds[(seed % 3) as usize], 0),
                }
            }
            Step::Demands(seed) => {
                let dice = &mut dice(seed);
                let wanted = [&[][..], &[("CPU", 1)], &[("CPU", 2)], &[("mine", 1)]];
                let demand = SetDemand {
                    shape_key: dice.below(3) as u64,
                    shape: Some(shape(wanted[dice.below(wanted.len())])),
                    requested_total: dice.below(6) as u64,
                    ..SetDemand::default()
                };
                let from = self.process(dice);
                if from.node() == HERE {
                    self.hears(Event::Message(from, to_node::Body::SetDemand(demand)));
                }
            }
            Step::Ends(seed) => {
                let process = match self.asked.killed.pop() {
                    Some(killed) => killed,
                    None => self.process(&mut dice(seed)),
                };
                self.ends(process);
            }
            Step::Done(seed) => self.is_done(seed),
            Step::Joins(seed) => {
                let number = OTHERS[(seed % 2) as usize];
                self.hears(Event::FromControl(from_control::Body::NodeJoined(info(number))));
            }
            Step::Leaves(seed) => self.leaves(OTHERS[(seed % 2) as usize], seed % 4 < 2),
            Step::Frame(seed) => {
                let dice = &mut dice(seed);
                let (from, to) = (self.process(dice), self.process(dice));
                self.hears(Event::FrameCame { from, to });
            }
            Step::Tick(seed) => {
                self.now += seed % (2 * SECOND);
                match seed % 16 {
                    0 => self.hears(Event::ControlLost),
                    1 => {
                        let process = self.process(&mut dice(seed));
                        let reason = "too large".into();
                        self.hears(Event::OutOfMemory { process, reason, over_limit: false });
                    }
                    _ => self.hears(Event::Tick),
                }
            }
        }
    }

    fn ends(&mut self, process: ProcessId) {
        // Of the end of others' processes their nodes tell.
        if process.node() == HERE {
            let (reason, last_lines) = ("exit code 1".into(), vec!["last words".into()]);
            self.hears(Event::Ended { process, reason, last_lines });
        }
    }

    fn leaves(&mut self, number: u32, is_said: bool) {
        let left = NodeInfo { number, left: "it died".into(), ..NodeInfo::default() };
        self.hears(match is_said {
            true => Event::FromControl(from_control::Body::NodeLeft(left)),
            false => Event::PeerLost(number, "the connection broke".into()),
        });
    }

    fn is_done(&mut self, seed: u64) {
        let is_well = !seed.is_multiple_of(3);
        let failed = || "no reason".to_owned();
        let asked = &mut self.asked;
        let event = match seed / 3 % 5 {
            0 => asked.templates.pop().map(|environment| {
                Event::Template(environment, if is_well { Ok(()) } else { Err(failed()) })
            }),
            1 => asked.spilling.pop().map(|key| {
                let keys = vec![key];
                Event::Disk(match is_well {
                    true => DiskNews::Spilled { keys, nanoseconds: 1 },
                    false => DiskNews::NotSpilled { keys, why: Refusal::lost(failed()) },
                })
            }),
            2 => asked.restoring.pop().map(|key| {
                Event::Disk(match is_well {
                    true => DiskNews::Restored(key),
                    false => DiskNews::NotRestored(key, failed()),
                })
            }),
            3 => asked
                .transfers
                .pop()
                .map(|key| Event::Transferred(key, if is_well { Ok(()) } else { Err(failed()) })),
            _ => std::mem::take(&mut asked.dialled).then(|| {
                let nodes = vec![info(HERE), info(OTHERS[0])];
                let (heads, lease_ms) = (vec![], 700);
                let welcome =
                    Welcome { number: HERE, cluster: vec![1; 16], nodes, heads, lease_ms };
                Event::FromControl(from_control::Body::Welcome(welcome))
            }),
        };
        if let Some(event) = event {
            self.hears(event);
        }
    }

    /// Everybody goes.
    fn is_left_alone(&mut self) {
        for number in OTHERS {
            self.leaves(number, false);
            self.leaves(number, true);
        }
        while let Some(process) = self.node.processes.keys().find(|id| id.node() == HERE).copied() {
            self.ends(process);
        }
        self.now += 100 * SECOND;
        self.hears(Event::Tick);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_is_said_ends_the_node(steps in prop::collection::vec(step(), 1..150)) {
        let mut victim = Victim::new();
        for step in steps {
            victim.takes(step);
        }
        victim.is_left_alone();
        let node = &victim.node;
        prop_assert!(node.leases.is_empty());
        prop_assert_eq!(node.bells.len(), 1, "the gateway");
        prop_assert!(node.rounds.is_empty());
        prop_assert!(node.member.asked.is_empty());
    }
}
