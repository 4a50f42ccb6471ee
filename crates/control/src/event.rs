//! What happens to the control service, and what it asks its shell to do.

use oxiray_wire::cluster::{from_control, to_control};

/// A connection: of a node, or of a tool. Never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeerId(pub u64);

/// The time, by two clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// Nanoseconds of a clock that never goes back.
    pub ns: u64,
    /// Milliseconds since 1970, for people.
    pub wall_ms: u64,
}

/// Something happened.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "an event is handed over once and not kept")]
pub enum Event {
    /// A message came over a connection.
    Message(PeerId, to_control::Body),
    /// A connection is gone: the other side ended it, or is no more.
    Closed(PeerId),
    /// A connection is gone because nothing came over it for long: the other side may live.
    Broken(PeerId),
    /// The time that [`crate::Control::next_wakeup`] named has come.
    Tick,
}

/// What the control service asks for. Calls are carried out in order, but that
/// everything to [`Self::persist`] in one event is written, all or nothing,
/// before anything of that event is sent.
pub trait Outbox {
    /// Sends a message.
    fn send(&mut self, to: PeerId, body: from_control::Body);
    /// Sends a message to several.
    fn send_all(&mut self, to: Vec<PeerId>, body: from_control::Body) {
        for peer in to {
            self.send(peer, body.clone());
        }
    }
    /// Closes a connection once everything was sent; [`Event::Closed`] need not follow.
    fn close(&mut self, peer: PeerId);
    /// Keeps something for after a restart.
    fn persist(&mut self, change: Change);
    /// Changes the cluster's secret; all nodes, and this peer, get `Tokens`.
    fn rotate(&mut self, peer: PeerId);
    /// Writes a sentence to the log.
    fn note(&mut self, text: String);
}

/// What is kept. The names are part of the format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Table {
    /// What there is one of: the cluster's name, counters.
    Meta,
    /// Members.
    Node,
    /// Actors that are not dead.
    Actor,
    /// The last actors that died.
    Dead,
    /// Names of actors.
    Name,
    /// Programs.
    Job,
    /// Keys and values of users.
    Kv,
    /// Placement groups, and the last that were removed.
    Group,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Meta,
        Self::Node,
        Self::Actor,
        Self::Dead,
        Self::Name,
        Self::Job,
        Self::Kv,
        Self::Group,
    ];

    /// Its name in a store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Node => "node",
            Self::Actor => "actor",
            Self::Dead => "dead",
            Self::Name => "name",
            Self::Job => "job",
            Self::Kv => "kv",
            Self::Group => "group",
        }
    }

    /// The table of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }
}

/// One thing that is kept.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Record {
    /// Where.
    pub table: Table,
    /// Under which key.
    pub key: Vec<u8>,
    /// What.
    pub value: Vec<u8>,
}

/// A change of what is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Keeps this instead of what was under the key.
    Put(Record),
    /// Keeps nothing under the key.
    Delete {
        /// Where.
        table: Table,
        /// Under which key.
        key: Vec<u8>,
    },
}

impl Change {
    /// Keeps `value` under `key`.
    pub fn put(table: Table, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self::Put(Record { table, key: key.into(), value: value.into() })
    }

    /// Keeps nothing under `key`.
    pub fn delete(table: Table, key: impl Into<Vec<u8>>) -> Self {
        Self::Delete { table, key: key.into() }
    }

    /// What it is about.
    pub fn place(&self) -> (Table, &[u8]) {
        match self {
            Self::Put(record) => (record.table, &record.key),
            Self::Delete { table, key } => (*table, key),
        }
    }
}
