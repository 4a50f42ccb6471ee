//! The object store, as messages reach it and its answers leave.

use oxiray_ids::{ProcessId, StoreKey};
use oxiray_store::{Extent, Orders, Refusal, SlabGrant};
use oxiray_wire::control::to_node::Body;
use oxiray_wire::control::{Allocated, Empty, Fetched, Refused, Slab, from_node};

use crate::event::{DiskNews, Outbox};
use crate::node::Node;

/// The counter at which the store's answers are given out.
pub(crate) struct Counter<'a, O>(pub(crate) &'a mut O);

impl<O: Outbox> Orders for Counter<'_, O> {
    fn allocated(&mut self, to: ProcessId, request: u64, answer: Result<(StoreKey, u64), Refusal>) {
        let answer = match answer {
            Ok((key, offset)) => Allocated { request, offset, key: key.0, refused: None },
            Err(why) => Allocated { request, refused: Some(refused(why)), ..Allocated::default() },
        };
        self.0.send(to, from_node::Body::Allocated(answer));
    }

    fn slab(&mut self, to: ProcessId, request: u64, slab: Option<SlabGrant>) {
        let slab = slab.map_or_else(Slab::default, |slab| Slab {
            offset: slab.offset,
            len: slab.len,
            keys: slab.keys.iter().map(|key| key.0).collect(),
            ..Slab::default()
        });
        self.0.send(to, from_node::Body::SlabGranted(Slab { request, ..slab }));
    }

    fn fetched(&mut self, to: ProcessId, request: u64, answer: Result<(), Refusal>) {
        let refused = answer.err().map(refused);
        self.0.send(to, from_node::Body::Fetched(Fetched { request, refused }));
    }

    fn trim(&mut self, process: ProcessId) {
        self.0.send(process, from_node::Body::Trim(Empty {}));
    }

    fn spill(&mut self, batch: Vec<(StoreKey, Extent)>) {
        self.0.spill(batch);
    }

    fn restore(&mut self, key: StoreKey, extent: Extent) {
        self.0.restore(key, extent);
    }

    fn forget(&mut self, key: StoreKey) {
        self.0.forget_copy(key);
    }

    fn tell_user(&mut self, text: String) {
        self.0.tell_user(text);
    }
}

fn refused(why: Refusal) -> Refused {
    Refused { text: why.text, out_of_disk: why.out_of_disk, store_full: why.store_full }
}

impl Node {
    pub(crate) fn on_store_message(
        &mut self,
        from: ProcessId,
        body: Body,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let (keeper, out) = (&mut self.keeper, &mut Counter(out));
        match body {
            Body::Allocate(wanted) => {
                let owner = ProcessId(wanted.owner);
                keeper.on_allocate(from, wanted.request, wanted.size, owner, now, out);
            }
            Body::Withdraw(withdraw) => keeper.on_withdraw(from, withdraw.request, now, out),
            Body::Free(freed) => {
                let keys: Vec<StoreKey> = freed.keys.into_iter().map(StoreKey).collect();
                keeper.on_free(&keys, now, out);
            }
            Body::Unpinned(unpinned) => {
                let slots: Vec<u32> = unpinned.keys.iter().map(|&slot| slot as u32).collect();
                keeper.on_unpinned(&slots, now, out);
            }
            Body::Fetch(fetch) => {
                keeper.on_fetch(from, fetch.request, StoreKey(fetch.key), now, out);
            }
            Body::DeathSeen(dead) => keeper.on_death_seen(from, ProcessId(dead.process), now, out),
            Body::WantSlab(slab) => keeper.on_slab(from, slab.request, slab.len, out),
            Body::ReturnSlab(slab) => keeper.on_slab_returned(from, slab.offset, now, out),
            _ => {}
        }
    }

    pub(crate) fn on_disk(&mut self, news: DiskNews, now: u64, out: &mut impl Outbox) {
        let (keeper, out) = (&mut self.keeper, &mut Counter(out));
        match news {
            DiskNews::Spilled { keys, nanoseconds } => {
                keeper.on_spilled(&keys, nanoseconds, now, out);
            }
            DiskNews::NotSpilled { keys, why } => keeper.on_not_spilled(&keys, why, now, out),
            DiskNews::Restored(key) => keeper.on_restored(key, now, out),
            DiskNews::NotRestored(key, why) => keeper.on_not_restored(key, &why, now, out),
        }
    }
}
