//! A machine: a node, and around it what the shell of `oxirayd` does.

use std::collections::{BTreeMap, BTreeSet};

use oxiray_ids::{ProcessId, StoreKey};
use oxiray_node::{Endpoint, Node, Outbox, Setup, Transfer};
use oxiray_store::{Extent, State, TABLE_BYTES, Table, Word};
use oxiray_sys::memory::memory_file;
use oxiray_wire::cluster::{BetweenNodes, Join, NodeInfo, Tokens, to_control};
use oxiray_wire::control::{Amount, ReadFile, UNIT, from_node};

use crate::happening::Happening;
use crate::looking::Memory;
use crate::plan::SECOND;
use crate::rings::Bridge;

/// Bytes of a machine's store: a few objects.
const STORE: u64 = 64 << 20;

pub(crate) struct Machine {
    pub(crate) alive: bool,
    /// Drivers run here: it does not die.
    pub(crate) is_safe: bool,
    pub(crate) info: NodeInfo,
    pub(crate) node: Option<Node>,
    /// With the control service.
    pub(crate) connection: Option<u64>,
    /// When it asked to be a member.
    pub(crate) asked_at: u64,
    /// Until then it is not heard by the control service, and does not hear it.
    pub(crate) unheard_until: u64,
    pub(crate) deaf_until: u64,
    /// Came before it was a member: others may hear of it first.
    pub(crate) early: Vec<Happening>,
    /// Channels with processes of other nodes: ours first.
    pub(crate) bridges: BTreeMap<(ProcessId, ProcessId), Bridge>,
    /// Frames of nodes that it has not heard of yet.
    pub(crate) early_frames: BTreeMap<u32, Vec<(ProcessId, ProcessId, Vec<u8>)>>,
    /// The table of its store, and the bytes there.
    pub(crate) table: Option<Table>,
    pub(crate) memory: Memory,
    pub(crate) processes: BTreeSet<ProcessId>,
    pub(crate) tick_at: Option<u64>,
    /// How often the connection with each other machine broke, as far as seen here.
    pub(crate) epochs: BTreeMap<usize, u64>,
    /// Numbers of those that left, as the control service said here.
    pub(crate) left: BTreeSet<u32>,
    /// CPUs of what runs here at this moment.
    pub(crate) used: u64,
    /// Some task here has lent its CPUs.
    pub(crate) has_lent: bool,
    /// Of each kind of task: since when there has been room for it.
    pub(crate) room_since: [Option<u64>; 4],
}

impl Machine {
    pub(crate) fn new(index: usize, cpus: u64, is_safe: bool) -> Self {
        let total = vec![Amount { name: "CPU".into(), amount: cpus * UNIT }];
        let mut id = [0; 28];
        id[..8].copy_from_slice(&(index as u64 + 1).to_le_bytes());
        let info = NodeInfo {
            id: id.to_vec(),
            address: format!("10.0.0.1:{index}"),
            host: format!("machine-{index}"),
            available: total.clone(),
            total,
            // The first one does not die: there is always one in zone 1.
            labels: [("zone".to_owned(), format!("zone-{}", (index + 1) % 3))].into(),
            is_head: index == 0,
            python: "3.11".into(),
            ..NodeInfo::default()
        };
        Self {
            alive: true,
            is_safe,
            info,
            node: None,
            connection: None,
            asked_at: 0,
            unheard_until: 0,
            deaf_until: 0,
            early: Vec::new(),
            bridges: BTreeMap::new(),
            early_frames: BTreeMap::new(),
            table: None,
            memory: Memory::default(),
            processes: BTreeSet::new(),
            tick_at: None,
            epochs: BTreeMap::new(),
            left: BTreeSet::new(),
            used: 0,
            has_lent: false,
            room_since: [None; 4],
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.info.number
    }

    /// What its store holds, as far as the first slots tell: names, owners and creators.
    pub(crate) fn stored(&self) -> Vec<(StoreKey, Word, ProcessId, ProcessId)> {
        let table = self.table.iter();
        let slots = table.flat_map(|table| (0..1000).map(move |slot| (table, slot)));
        let used = slots.filter(|(table, slot)| table.word(*slot).state() != State::Free);
        let all = used.map(|(table, slot)| {
            let (word, (owner, creator)) = (table.word(slot), table.parties(slot));
            (StoreKey::new(slot, word.generation()), word, owner, creator)
        });
        all.collect()
    }

    pub(crate) fn cpus(&self) -> u64 {
        self.info.total[0].amount / UNIT
    }

    /// It became a member: its node begins.
    pub(crate) fn begin(&mut self, number: u32, asked_at: u64) {
        self.info.number = number;
        let setup = Setup {
            resources: self.info.total.clone(),
            store_size: STORE,
            store_patience: 30 * SECOND,
            prestart_workers: 0,
            max_starting: 4,
            max_processes: 256,
            limited_by: String::new(),
            clock_began_ns: 0,
            job: None,
            member: self.info.clone(),
            alone: false,
            asked_at,
        };
        let table = memory_file("sim-table", TABLE_BYTES).and_then(Table::map).expect("memory");
        self.table = Some(table.clone());
        self.node = Some(Node::new(setup, table));
    }
}

/// Something that a node asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    Send(ProcessId, from_node::Body),
    Open([Endpoint; 2]),
    Close(ProcessId, ProcessId),
    /// A worker of this environment, and the template of one.
    Start(u32),
    Template(u32),
    Kill(ProcessId),
    Peer(u32, BetweenNodes),
    Control(to_control::Body),
    Dial(Join),
    Left(u32),
    /// The node was given up, and is to be another one.
    Rejoin,
    /// The node leaves, for this reason.
    Leave(String),
    Spill(Vec<(StoreKey, Extent)>),
    Restore(StoreKey, Extent),
    ForgetCopy(StoreKey),
    Transfer(Transfer),
    Lend(u64, Extent),
    EndLending(u64),
}

/// What a node asks for in one event, in order.
#[derive(Default)]
pub(crate) struct Wishes(pub(crate) Vec<Asked>);

impl Outbox for Wishes {
    fn send(&mut self, to: ProcessId, body: from_node::Body) {
        self.0.push(Asked::Send(to, body));
    }
    fn open_channel(&mut self, ends: [Endpoint; 2]) {
        self.0.push(Asked::Open(ends));
    }
    fn start_worker(&mut self, environment: u32) {
        self.0.push(Asked::Start(environment));
    }
    fn make_template(&mut self, environment: u32, _text: &str) {
        self.0.push(Asked::Template(environment));
    }
    fn end_template(&mut self, _environment: u32) {}
    fn kill(&mut self, process: ProcessId) {
        self.0.push(Asked::Kill(process));
    }
    fn tell_peer(&mut self, node: u32, message: BetweenNodes) {
        self.0.push(Asked::Peer(node, message));
    }
    fn tell_control(&mut self, body: to_control::Body) {
        self.0.push(Asked::Control(body));
    }
    fn dial_control(&mut self, join: Join) {
        self.0.push(Asked::Dial(join));
    }
    fn remove_node(&mut self, number: u32) {
        self.0.push(Asked::Left(number));
    }
    fn exclude(&mut self, why: String) {
        panic!("a node is refused: {why}");
    }
    fn rejoin(&mut self, _why: String) {
        self.0.push(Asked::Rejoin);
    }
    // Whoever has a number can be spoken to, and there is no secret.
    fn add_node(&mut self, _info: &NodeInfo) {}
    fn change_tokens(&mut self, _tokens: Tokens) {}
    fn leave(&mut self, why: String) {
        self.0.push(Asked::Leave(why));
    }
    fn close_channel(&mut self, local: ProcessId, foreign: ProcessId) {
        self.0.push(Asked::Close(local, foreign));
    }
    fn shut_down(&mut self, _asked: bool) {
        unreachable!("this node ends with nobody");
    }
    fn spill(&mut self, batch: Vec<(StoreKey, Extent)>) {
        self.0.push(Asked::Spill(batch));
    }
    fn restore(&mut self, key: StoreKey, extent: Extent) {
        self.0.push(Asked::Restore(key, extent));
    }
    fn forget_copy(&mut self, key: StoreKey) {
        self.0.push(Asked::ForgetCopy(key));
    }
    fn transfer(&mut self, transfer: Transfer) {
        self.0.push(Asked::Transfer(transfer));
    }
    fn lend(&mut self, grant: u64, extent: Extent) {
        self.0.push(Asked::Lend(grant, extent));
    }
    fn end_lending(&mut self, grant: u64) {
        self.0.push(Asked::EndLending(grant));
    }
    fn tell_user(&mut self, _text: String) {}
    fn read_file(&mut self, _asker: ProcessId, _wanted: ReadFile) {}
}
