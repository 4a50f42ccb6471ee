//! The stores of machines as processes use them, and their memory and disks.
//!
//! Every object here is too large for a slab, so that its room is asked for. Memory holds what was
//! written to it until something else is written there: whoever looks at bytes that were given to
//! another sees the wrong ones.

use std::collections::BTreeMap;

use oxiray_ids::{Origin, ProcessId, StoreKey};
use oxiray_node::{DiskNews, Event, Transfer};
use oxiray_store::{Extent, Miss};
use oxiray_wire::control::{self, Fetch, Lacking, PullObject, Refused, to_node};

use crate::desk::{Reply, Unread};
use crate::happening::Happening;
use crate::plan::{MICROSECOND, MILLISECOND};
use crate::waiting::{Purpose, Waiting};
use crate::world::World;

/// The bytes of a machine's store.
#[derive(Default)]
pub(crate) struct Memory {
    by_offset: BTreeMap<u64, (u64, Vec<u8>)>,
    disk: BTreeMap<StoreKey, Vec<u8>>,
    /// What other nodes may read.
    pub(crate) lent: BTreeMap<u64, Extent>,
}

impl Memory {
    pub(crate) fn write(&mut self, extent: Extent, bytes: Vec<u8>) {
        let end = extent.offset + extent.len;
        self.by_offset.retain(|at, (len, _)| at + *len <= extent.offset || *at >= end);
        self.by_offset.insert(extent.offset, (extent.len, bytes));
    }

    /// What is there; nothing if that was never written, or written over.
    pub(crate) fn read(&self, extent: Extent) -> Vec<u8> {
        self.by_offset.get(&extent.offset).map(|(_, bytes)| bytes.clone()).unwrap_or_default()
    }
}

/// What came of a look.
enum Looked {
    Bytes(Vec<u8>),
    /// The node was asked.
    Asked,
    Gone,
}

impl World {
    /// A process looks at an object, wherever it is, as `Runtime::look_at` does.
    pub(crate) fn look(
        &mut self,
        id: ProcessId,
        origin: Origin,
        len: u64,
        purpose: Purpose,
    ) -> Option<Reply> {
        match self.try_look(id, origin, len, purpose) {
            Looked::Asked => None,
            Looked::Bytes(bytes) => self.looked(id, origin.node, purpose, Ok(bytes)),
            Looked::Gone => {
                self.gone(id, origin, "it is not in the store");
                self.looked(id, origin.node, purpose, Err(Unread::Fault))
            }
        }
    }

    fn try_look(&mut self, id: ProcessId, origin: Origin, len: u64, purpose: Purpose) -> Looked {
        let here = origin.node == id.node();
        let key = match here {
            true => Some(origin.key),
            false => self.processes[&id].copies.get(&origin).copied(),
        };
        let missed = match key.map(|key| self.pin(id, key)) {
            Some(Ok(extent)) => {
                let process = &self.processes[&id];
                let bytes = self.machines[process.machine].memory.read(extent);
                let slot = key.expect("just seen").slot();
                match purpose {
                    // A task looks at its arguments while it runs.
                    Purpose::Argument => {
                        self.process_mut(id).thread.as_mut().expect("it asks").looks.push(slot);
                    }
                    Purpose::Get(_) => self.end_look(id, slot),
                }
                return Looked::Bytes(bytes);
            }
            Some(Err(miss)) => Some(miss),
            None => None,
        };
        if here && missed == Some(Miss::Gone) {
            return Looked::Gone;
        }
        let process = self.process_mut(id);
        let request = process.next();
        process.waiting = Waiting::Look { origin, len, purpose, request };
        let Origin { node, key } = origin;
        let body = match here {
            true => to_node::Body::Fetch(Fetch { request, key: key.0 }),
            false => {
                let pull = PullObject { request, node, key: key.0, len, ..PullObject::default() };
                to_node::Body::Pull(pull)
            }
        };
        self.tell_node(id, body);
        Looked::Asked
    }

    /// The node answers about an object that a process wants to look at.
    pub(crate) fn look_came(
        &mut self,
        id: ProcessId,
        request: u64,
        answer: Result<Option<u64>, Refused>,
    ) {
        let process = self.process_mut(id);
        let Waiting::Look { origin, len, purpose, request: asked } = process.waiting else {
            return;
        };
        if asked != request {
            return;
        }
        process.waiting = Waiting::Nothing;
        let reply = match answer {
            Ok(copy) => {
                if let Some(key) = copy {
                    process.copies.insert(origin, StoreKey(key));
                }
                self.look(id, origin, len, purpose)
            }
            Err(refused) if refused.lacking() == Lacking::Node => {
                self.looked(id, origin.node, purpose, Err(Unread::NodeLeft))
            }
            Err(refused) => {
                self.gone(id, origin, &refused.text);
                self.looked(id, origin.node, purpose, Err(Unread::Fault))
            }
        };
        if let Some(reply) = reply {
            self.reply(id, reply);
        }
    }

    fn pin(&mut self, id: ProcessId, key: StoreKey) -> Result<Extent, Miss> {
        let process = self.process_mut(id);
        let count = process.looks.get(&key.slot()).copied().unwrap_or(0);
        let table = &process.io.table;
        let found = match count {
            0 => table.pin(process.row, key),
            _ if table.word(key.slot()).is(key) => Ok(table.extent(key.slot())),
            _ => Err(Miss::Gone),
        };
        match found {
            Ok(_) => _ = process.looks.insert(key.slot(), count + 1),
            Err(_) if count == 0 => self.unpin(id, key.slot()),
            Err(_) => {}
        }
        found
    }

    fn unpin(&mut self, id: ProcessId, slot: u32) {
        let process = &self.processes[&id];
        if process.io.table.unpin(process.row, slot) {
            let keys = vec![u64::from(slot)];
            self.tell_node(id, to_node::Body::Unpinned(control::Stored { keys }));
        }
    }

    pub(crate) fn end_look(&mut self, id: ProcessId, slot: u32) {
        let looks = &mut self.process_mut(id).looks;
        let count = looks.get_mut(&slot).expect("it looks");
        *count -= 1;
        if *count == 0 {
            looks.remove(&slot);
            self.unpin(id, slot);
        }
    }

    /// Fills and seals an object.
    pub(crate) fn fill(
        &mut self,
        id: ProcessId,
        key: StoreKey,
        bytes: Vec<u8>,
        owner: ProcessId,
    ) -> (Origin, u64) {
        let process = &self.processes[&id];
        let extent = process.io.table.extent(key.slot());
        self.machines[process.machine].memory.write(extent, bytes);
        if !process.io.table.seal(key, owner == id) {
            // Its owner died meanwhile.
            let keys = vec![u64::from(key.slot())];
            self.tell_node(id, to_node::Body::Unpinned(control::Stored { keys }));
        }
        (Origin { node: id.node(), key }, extent.len)
    }

    /// A machine's disk is asked to write.
    pub(crate) fn spill(&mut self, index: usize, batch: Vec<(StoreKey, Extent)>) {
        let memory = &mut self.machines[index].memory;
        let keys: Vec<StoreKey> = batch.iter().map(|(key, _)| *key).collect();
        for (key, extent) in batch {
            let bytes = memory.read(extent);
            memory.disk.insert(key, bytes);
        }
        let nanoseconds = self.random.between(100 * MICROSECOND, 5 * MILLISECOND);
        let news = DiskNews::Spilled { keys, nanoseconds };
        self.agenda.add(self.now + nanoseconds, Happening::Disk(index, news));
    }

    /// A machine's disk is asked to read.
    pub(crate) fn restore(&mut self, index: usize, key: StoreKey, extent: Extent) {
        let memory = &mut self.machines[index].memory;
        let bytes = memory.disk.get(&key).cloned().expect("K-5: it has a copy there");
        memory.write(extent, bytes);
        let at = self.now + self.random.between(100 * MICROSECOND, 5 * MILLISECOND);
        self.agenda.add(at, Happening::Disk(index, DiskNews::Restored(key)));
    }

    pub(crate) fn forget_copy(&mut self, index: usize, key: StoreKey) {
        self.machines[index].memory.disk.remove(&key);
    }

    /// A machine is asked to read an object from another: its bytes take a while.
    pub(crate) fn transfer(&mut self, index: usize, transfer: Transfer) {
        let at = self.now + self.random.between(200 * MICROSECOND, 20 * MILLISECOND);
        let from = self.by_number.get(&transfer.node).copied();
        let at = at.max(from.map_or(0, |from| self.reached_at(from, index)));
        self.agenda.add(at, Happening::Transfer(index, transfer));
    }

    pub(crate) fn transferred(&mut self, index: usize, transfer: Transfer) {
        let Transfer { node, grant, key, extent } = transfer;
        if !self.machines[index].alive {
            return;
        }
        let from = self.by_number.get(&node).map(|from| &self.machines[*from]);
        let from = from.filter(|from| from.alive && !self.machines[index].left.contains(&node));
        let lent = from.and_then(|from| Some((from, *from.memory.lent.get(&grant)?)));
        let result = match lent.map(|(from, extent)| from.memory.read(extent)) {
            Some(bytes) => {
                self.machines[index].memory.write(extent, bytes);
                Ok(())
            }
            None => Err("it cannot be read there any more".to_owned()),
        };
        self.event(index, Event::Transferred(key, result));
    }
}
