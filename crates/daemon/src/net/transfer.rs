//! Bytes of objects between nodes, straight between shared memory and sockets, by
//! threads of their own: an object is read in parts, over several connections.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use oxiray_ids::StoreKey;
use oxiray_net::{Bulk, Link, Security, Stopper};
use oxiray_node::Transfer;
use oxiray_store::Extent;
use oxiray_sys::eventfd;
use oxiray_sys::memory::Mapping;
use oxiray_wire::cluster::{Hello, Purpose, ReadRange};
use parking_lot::{Condvar, Mutex};
use prost::Message;

/// Bytes that are asked for at once.
const PART: u64 = 8 << 20;
/// Connections to one node, each with its thread.
const CONNECTIONS: usize = 4;
/// A connection that nobody needs is kept so long.
const IDLE: Duration = Duration::from_secs(10);
/// A node that sends nothing for so long while bytes are due is given up.
const STALLED: Duration = Duration::from_secs(10);

/// Follows the bytes of a part, if they were lent to the end.
const STILL_LENT: u8 = 1;

/// An object on its way here.
struct Coming {
    key: StoreKey,
    parts_left: AtomicUsize,
    failed: Mutex<Option<String>>,
}

struct Part {
    coming: Arc<Coming>,
    range: ReadRange,
    /// Where it goes in the arena.
    at: u64,
}

/// What is wanted of one node.
struct Source {
    number: u32,
    /// Its own, or of the node through which it is reached.
    address: Mutex<SocketAddr>,
    queue: Mutex<Queue>,
    more: Condvar,
}

#[derive(Default)]
struct Queue {
    parts: VecDeque<Part>,
    threads: usize,
    idle: usize,
    gone: bool,
    /// By which connections are ended that may wait for bytes for long.
    stoppers: Vec<Stopper>,
}

/// What the threads share.
struct Shared {
    own: u32,
    security: Mutex<Security>,
    arena: Arc<Mapping>,
    bell: OwnedFd,
    done: Mutex<Vec<(StoreKey, Result<(), String>)>>,
    /// What other nodes may read.
    lent: Mutex<HashMap<u64, Extent>>,
}

/// All transfers of a node.
pub(crate) struct Transfers {
    shared: Arc<Shared>,
    sources: BTreeMap<u32, Arc<Source>>,
}

impl Transfers {
    pub(crate) fn new(own: u32, security: Security, arena: Arc<Mapping>) -> io::Result<Self> {
        let shared = Shared {
            own,
            security: Mutex::new(security),
            arena,
            bell: eventfd::new()?,
            done: Mutex::default(),
            lent: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared), sources: BTreeMap::new() })
    }

    /// What is readable when a transfer is done.
    pub(crate) fn bell(&self) -> impl AsFd {
        &self.shared.bell
    }

    pub(crate) fn add_node(&mut self, number: u32, address: SocketAddr) {
        let queue = Mutex::default();
        let source = Source { number, address: Mutex::new(address), queue, more: Condvar::new() };
        self.sources.insert(number, Arc::new(source));
    }

    /// A node is reached there from now on: connections that lead elsewhere may be silent for long,
    /// and what they were to bring is asked for again.
    pub(crate) fn lead(&self, number: u32, address: SocketAddr) {
        if let Some(source) = self.sources.get(&number) {
            let before = std::mem::replace(&mut *source.address.lock(), address);
            if before != address {
                source.queue.lock().stoppers.drain(..).for_each(|stopper| stopper.stop());
            }
        }
    }

    /// A node is gone: what is still wanted of it fails.
    pub(crate) fn remove_node(&mut self, number: u32) {
        if let Some(source) = self.sources.remove(&number) {
            let parts = {
                let mut queue = source.queue.lock();
                queue.gone = true;
                queue.stoppers.iter().for_each(Stopper::stop);
                std::mem::take(&mut queue.parts)
            };
            source.more.notify_all();
            for part in parts {
                self.shared.end(&part.coming, Err("its node has left the cluster".into()));
            }
        }
    }

    /// Connections from now on are protected by this.
    pub(crate) fn set_security(&self, security: Security) {
        *self.shared.security.lock() = security;
    }

    /// Begins to read an object.
    pub(crate) fn begin(&mut self, transfer: Transfer) {
        let Transfer { node, grant, key, extent } = transfer;
        let parts = extent.len.div_ceil(PART).max(1);
        let parts_left = AtomicUsize::new(parts as usize);
        let coming = Arc::new(Coming { key, parts_left, failed: Mutex::new(None) });
        let Some(source) = self.sources.get(&node) else {
            for _ in 0..parts {
                self.shared.end(&coming, Err("its node has left the cluster".into()));
            }
            return;
        };
        let mut queue = source.queue.lock();
        for number in 0..parts {
            let offset = number * PART;
            let len = PART.min(extent.len - offset);
            let range = ReadRange { grant, offset, len };
            let at = extent.offset + offset;
            queue.parts.push_back(Part { coming: coming.clone(), range, at });
        }
        let wanted = queue.parts.len().saturating_sub(queue.idle).min(CONNECTIONS - queue.threads);
        for _ in 0..wanted {
            let (shared, source) = (self.shared.clone(), source.clone());
            let spawned = thread::Builder::new()
                .name("oxiray-pull".into())
                .stack_size(256 << 10)
                .spawn(move || pull(&shared, &source));
            match spawned {
                Ok(_) => queue.threads += 1,
                Err(error) => tracing::warn!(%error, "no thread for a transfer"),
            }
        }
        if queue.threads == 0 {
            let parts = std::mem::take(&mut queue.parts);
            drop(queue);
            for part in parts {
                self.shared.end(&part.coming, Err("there was no thread to read it".into()));
            }
            return;
        }
        drop(queue);
        source.more.notify_all();
    }

    /// What has been done since the last time.
    pub(crate) fn done(&self) -> Vec<(StoreKey, Result<(), String>)> {
        eventfd::quiet(&self.shared.bell);
        std::mem::take(&mut *self.shared.done.lock())
    }

    pub(crate) fn lend(&self, grant: u64, extent: Extent) {
        self.shared.lent.lock().insert(grant, extent);
    }

    pub(crate) fn end_lending(&self, grant: u64) {
        self.shared.lent.lock().remove(&grant);
    }

    /// Somebody wants bytes over this connection.
    pub(crate) fn serve(&self, link: Link) {
        let shared = self.shared.clone();
        let spawned = link.into_bulk().and_then(|bulk| {
            let serve = move || serve(&shared, bulk);
            thread::Builder::new().name("oxiray-serve".into()).stack_size(256 << 10).spawn(serve)
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "a data connection cannot be served");
        }
    }
}

impl Shared {
    /// One part more is there, or is not to be had.
    fn end(&self, coming: &Coming, result: Result<(), String>) {
        if let Err(why) = result {
            coming.failed.lock().get_or_insert(why);
        }
        if coming.parts_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let result = coming.failed.lock().take().map_or(Ok(()), Err);
            self.done.lock().push((coming.key, result));
            eventfd::ring(&self.bell);
        }
    }
}

/// Reads parts from one node until there are none for long.
fn pull(shared: &Shared, source: &Source) {
    oxiray_sys::process::block_signals_in_this_thread();
    let mut connection: Option<Bulk> = None;
    loop {
        let part = {
            let mut queue = source.queue.lock();
            loop {
                if let Some(part) = queue.parts.pop_front() {
                    break part;
                }
                queue.idle += 1;
                let waited = source.more.wait_for(&mut queue, IDLE);
                queue.idle -= 1;
                if queue.parts.is_empty() && (queue.gone || waited.timed_out()) {
                    queue.threads -= 1;
                    return;
                }
            }
        };
        let result = read_part(shared, source, &mut connection, &part);
        if result.is_err() {
            connection = None;
        }
        shared.end(&part.coming, result);
    }
}

fn read_part(
    shared: &Shared,
    source: &Source,
    connection: &mut Option<Bulk>,
    part: &Part,
) -> Result<(), String> {
    // Another part failed: its grant may be gone.
    if let Some(why) = &*part.coming.failed.lock() {
        return Err(why.clone());
    }
    if connection.is_none() {
        let security = shared.security.lock().clone();
        let address = *source.address.lock();
        let mut bulk =
            Bulk::connect(address, &security, STALLED).map_err(|error| error.to_string())?;
        let mut hello = Hello {
            version: oxiray_wire::VERSION,
            node: shared.own,
            to: source.number,
            ..Hello::default()
        };
        hello.set_purpose(Purpose::Data);
        bulk.send_frame(&[&hello.encode_to_vec()]).map_err(|error| error.to_string())?;
        if let Ok(stopper) = bulk.stopper() {
            let mut queue = source.queue.lock();
            if queue.gone {
                return Err("its node has left the cluster".into());
            }
            // Those of connections that ended do nothing.
            if queue.stoppers.len() >= 4 * CONNECTIONS {
                queue.stoppers.remove(0);
            }
            queue.stoppers.push(stopper);
        }
        *connection = Some(bulk);
    }
    let bulk = connection.as_mut().expect("just made");
    bulk.send_frame(&[&part.range.encode_to_vec()]).map_err(|error| error.to_string())?;
    shared
        .arena
        .fill(part.at as usize, part.range.len as usize, |into| bulk.read_exact(into))
        .and_then(|()| bulk.read_exact(&mut [0]))
        .map_err(|error| error.to_string())
}

/// Sends what another node asks for, until it goes.
fn serve(shared: &Shared, mut bulk: Bulk) {
    oxiray_sys::process::block_signals_in_this_thread();
    // It may be idle for long; writing is what must not stall.
    let _ = bulk.set_write_timeout(STALLED);
    let mut request = Vec::new();
    loop {
        if bulk.recv_frame(&mut request).is_err() {
            return;
        }
        let Ok(range) = ReadRange::decode(&request[..]) else {
            return;
        };
        let extent = shared.lent.lock().get(&range.grant).copied();
        let within = |extent: &Extent| {
            range.offset.checked_add(range.len).is_some_and(|end| end <= extent.len)
        };
        let Some(extent) = extent.filter(within) else {
            return tracing::warn!("bytes were asked for that are not lent");
        };
        let at = (extent.offset + range.offset) as usize;
        if bulk.write_all(shared.arena.bytes(at, range.len as usize)).is_err() {
            return;
        }
        // They may have been another's by the end; then the reader must not use them.
        let still_lent = shared.lent.lock().contains_key(&range.grant);
        if !still_lent || bulk.write_all(&[STILL_LENT]).is_err() {
            return;
        }
    }
}
