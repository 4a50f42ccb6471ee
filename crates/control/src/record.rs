//! What is kept, and under which key. Fields may be added, never changed: an
//! older store must be readable.

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::{ActorInfo, Introduce};
use oxiray_wire::control::{ActorPhase, CreateActor, CreateGroup, GroupPhase, incarnation};
use prost::Message;

use crate::kv::Done;
use crate::names::Name;

/// Keys of [`crate::Table::Meta`].
pub(crate) const CLUSTER: &[u8] = b"cluster";
/// Keys of [`crate::Table::Meta`].
pub(crate) const LAST_NUMBER: &[u8] = b"last-number";

/// An actor that is not dead.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ActorRecord {
    /// As its creator sent it.
    #[prost(message, optional, tag = "1")]
    pub(crate) create: Option<CreateActor>,
    /// Process number.
    #[prost(uint64, tag = "2")]
    pub(crate) creator: u64,
    /// Where it lives or starts; 0: it waits for a node.
    #[prost(uint32, tag = "3")]
    pub(crate) node: u32,
    /// How often it was started again, as far as was heard.
    #[prost(uint64, tag = "4")]
    pub(crate) restarts: u64,
    #[prost(enumeration = "ActorPhase", tag = "5")]
    pub(crate) phase: i32,
    /// Process number, when alive.
    #[prost(uint64, tag = "6")]
    pub(crate) process: u64,
    /// A node where it was has died: watchers are told of a restart.
    #[prost(bool, tag = "7")]
    pub(crate) moved: bool,
    /// Why it was started again last, or why it waits.
    #[prost(string, tag = "8")]
    pub(crate) reason: String,
    /// It must not be started again, for this reason.
    #[prost(string, optional, tag = "9")]
    pub(crate) killed: Option<String>,
    /// It took calls since it was placed at its node.
    #[prost(bool, tag = "10")]
    pub(crate) was_alive: bool,
    /// About its creator, for a node that does not know it.
    #[prost(message, optional, tag = "11")]
    pub(crate) about_creator: Option<Introduce>,
    /// Operating-system process id, when alive.
    #[prost(uint32, tag = "12")]
    pub(crate) pid: u32,
    /// Of its restarts, so many do not count: its node was drained (D-3).
    #[prost(uint64, tag = "30")]
    pub(crate) uncounted: u64,
    /// How often it was taken from a node (C-10).
    #[prost(uint32, tag = "31")]
    pub(crate) stay: u32,
}

/// An actor that died.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeadRecord {
    /// Reads on after "The actor died because".
    #[prost(string, tag = "1")]
    pub(crate) reason: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) creation_error: Vec<u8>,
    #[prost(string, tag = "3")]
    pub(crate) class_name: String,
    /// The later it died, the higher.
    #[prost(uint64, tag = "4")]
    pub(crate) order: u64,
    #[prost(uint64, tag = "5")]
    pub(crate) restarts: u64,
    /// What else people want to know of it.
    #[prost(message, optional, tag = "6")]
    pub(crate) info: Option<ActorInfo>,
    /// As in [`oxiray_wire::control::ActorState`].
    #[prost(uint32, tag = "7")]
    pub(crate) failure: u32,
    /// Likewise, with `restarts`.
    #[prost(uint32, tag = "8")]
    pub(crate) stay: u32,
}

/// A placement group.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GroupRecord {
    /// As its creator sent it.
    #[prost(message, optional, tag = "1")]
    pub(crate) create: Option<CreateGroup>,
    /// Process number of the driver that it ends with; 0: none.
    #[prost(uint64, tag = "2")]
    pub(crate) driver: u64,
    /// Where each bundle is; 0: nowhere.
    #[prost(uint32, repeated, tag = "3")]
    pub(crate) nodes: Vec<u32>,
    #[prost(enumeration = "GroupPhase", tag = "4")]
    pub(crate) phase: i32,
    /// Wall-clock milliseconds, as the next two.
    #[prost(uint64, tag = "5")]
    pub(crate) asked_ms: u64,
    #[prost(uint64, tag = "6")]
    pub(crate) created_ms: u64,
    #[prost(uint64, tag = "7")]
    pub(crate) removed_ms: u64,
    /// Why it was removed, or lost bundles.
    #[prost(string, tag = "8")]
    pub(crate) reason: String,
    /// The later it was asked for, or removed, the higher.
    #[prost(uint64, tag = "9")]
    pub(crate) order: u64,
    /// From when it was asked for until it was first created, in microseconds.
    #[prost(uint64, tag = "10")]
    pub(crate) waited_us: u64,
}

/// A name that is taken.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct NameRecord {
    #[prost(string, tag = "1")]
    pub(crate) namespace: String,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(uint64, tag = "3")]
    pub(crate) creator: u64,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) about: Vec<u8>,
}

impl ActorRecord {
    pub(crate) fn creator(&self) -> ProcessId {
        ProcessId(self.creator)
    }

    pub(crate) fn class_name(&self) -> &str {
        self.create.as_ref().map_or("", |create| &create.class_name)
    }

    /// Which incarnation it is in, as far as was heard.
    pub(crate) fn incarnation(&self) -> u64 {
        incarnation(self.stay, self.restarts)
    }

    /// How often it may still be started again; `None`: for ever.
    pub(crate) fn restarts_left(&self) -> Option<u64> {
        let most = self.create.as_ref().map_or(0, |create| create.max_restarts);
        let counted = self.restarts.saturating_sub(self.uncounted);
        u64::try_from(most).ok().map(|most| most.saturating_sub(counted))
    }
}

/// Beginning of the keys of [`crate::Table::Meta`] for what nodes asked of the key-value table.
const KV_DONE: &[u8] = b"kv-done-";

/// Key of what a node asked of the key-value table and may ask again.
pub(crate) fn kv_done_key(node: u32) -> Vec<u8> {
    [KV_DONE, &node.to_be_bytes()].concat()
}

/// The node of such a key.
pub(crate) fn kv_done_node(key: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(key.strip_prefix(KV_DONE)?.try_into().ok()?))
}

/// What is kept of that: requests, and how many values each changed.
pub(crate) fn kv_done_value(done: &Done) -> Vec<u8> {
    done.iter()
        .flat_map(|(request, count)| [request.to_be_bytes(), count.to_be_bytes()].concat())
        .collect()
}

/// The way back from [`kv_done_value`].
pub(crate) fn split_kv_done(bytes: &[u8]) -> Option<Done> {
    let (pairs, rest) = bytes.as_chunks::<16>();
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    let done = pairs.iter().map(|pair| (number(&pair[..8]), number(&pair[8..]))).collect();
    rest.is_empty().then_some(done)
}

/// Key of a member.
pub(crate) fn node_key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Key of a name: its actor has one name only.
pub(crate) fn name_key(actor: ActorId) -> [u8; 16] {
    actor.0
}

/// What is kept of a name.
pub(crate) fn name_value((namespace, name): &Name, creator: ProcessId, about: &[u8]) -> Vec<u8> {
    let (namespace, name) = (namespace.clone(), name.clone());
    NameRecord { namespace, name, creator: creator.0, about: about.to_vec() }.encode_to_vec()
}

/// Key of a user's key: the namespace's length, the namespace, the key.
pub(crate) fn kv_key(namespace: &str, key: &[u8]) -> Vec<u8> {
    let mut bytes = (namespace.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(namespace.as_bytes());
    bytes.extend_from_slice(key);
    bytes
}

/// The way back from [`kv_key`].
pub(crate) fn split_kv_key(bytes: &[u8]) -> Option<(String, Vec<u8>)> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let (namespace, key) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
    Some((String::from_utf8(namespace.to_vec()).ok()?, key.to_vec()))
}
