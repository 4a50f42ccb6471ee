//! The object store, as messages reach it and its answers leave.

use std::collections::VecDeque;

use oxiray_ids::{ProcessId, StoreKey};
use oxiray_store::{Extent, Lack, Orders, Refusal, SlabGrant};
use oxiray_wire::control::to_node::Body;
use oxiray_wire::control::{Allocated, Empty, Fetched, Lacking, Refused, Slab, from_node};

use crate::event::{DiskNews, Outbox};
use crate::node::Node;

/// What the store says to the node itself.
#[derive(Debug)]
pub(crate) enum OwnNews {
    /// Room for a copy.
    Room(u64, Result<StoreKey, Refusal>),
    /// An object to lend is in memory.
    Fetched(u64, Result<(), Refusal>),
    /// A copy had to go.
    CopyGone(StoreKey),
    /// An object is gone.
    Gone(StoreKey),
}

/// The counter at which the store's answers are given out.
pub(crate) struct Counter<'a, O> {
    pub(crate) out: &'a mut O,
    /// The node's own number: it asks as well.
    pub(crate) own: ProcessId,
    pub(crate) news: &'a mut VecDeque<OwnNews>,
}

impl<O: Outbox> Orders for Counter<'_, O> {
    fn allocated(&mut self, to: ProcessId, request: u64, answer: Result<(StoreKey, u64), Refusal>) {
        if self.own == to {
            return self.news.push_back(OwnNews::Room(request, answer.map(|(key, _)| key)));
        }
        let answer = match answer {
            Ok((key, offset)) => Allocated { request, offset, key: key.0, refused: None },
            Err(why) => Allocated { request, refused: Some(refused(why)), ..Allocated::default() },
        };
        self.out.send(to, from_node::Body::Allocated(answer));
    }

    fn slab(&mut self, to: ProcessId, request: u64, slab: Option<SlabGrant>) {
        let slab = slab.map_or_else(Slab::default, |slab| Slab {
            offset: slab.offset,
            len: slab.len,
            keys: slab.keys.iter().map(|key| key.0).collect(),
            ..Slab::default()
        });
        self.out.send(to, from_node::Body::SlabGranted(Slab { request, ..slab }));
    }

    fn fetched(&mut self, to: ProcessId, request: u64, answer: Result<(), Refusal>) {
        if self.own == to {
            return self.news.push_back(OwnNews::Fetched(request, answer));
        }
        let refused = answer.err().map(refused);
        self.out.send(to, from_node::Body::Fetched(Fetched { request, refused }));
    }

    fn trim(&mut self, process: ProcessId) {
        if self.own != process {
            self.out.send(process, from_node::Body::Trim(Empty {}));
        }
    }

    fn spill(&mut self, batch: Vec<(StoreKey, Extent)>) {
        self.out.spill(batch);
    }

    fn restore(&mut self, key: StoreKey, extent: Extent) {
        self.out.restore(key, extent);
    }

    fn forget(&mut self, key: StoreKey) {
        self.out.forget_copy(key);
    }

    fn tell_user(&mut self, text: String) {
        self.out.tell_user(text);
    }

    fn copy_gone(&mut self, key: StoreKey) {
        self.news.push_back(OwnNews::CopyGone(key));
    }

    fn gone(&mut self, key: StoreKey) {
        self.news.push_back(OwnNews::Gone(key));
    }
}

/// The keeper of a node, and the counter for its answers.
macro_rules! keeper {
    ($node:expr, $out:expr) => {{
        let own = $node.gateway();
        let counter = crate::storage::Counter { out: $out, own, news: &mut $node.own_news };
        (&mut $node.keeper, counter)
    }};
}
pub(crate) use keeper;

/// What the store refused, as others are told.
pub(crate) fn refused(why: Refusal) -> Refused {
    let lacking = match why.lack {
        Lack::Object => Lacking::Object,
        Lack::Memory => Lacking::Memory,
        Lack::Disk => Lacking::Disk,
    };
    Refused::new(lacking, why.text)
}

impl Node {
    pub(crate) fn on_store_message(
        &mut self,
        from: ProcessId,
        body: Body,
        now: u64,
        out: &mut impl Outbox,
    ) {
        if let Body::Pull(wanted) = &body {
            return self.on_want_copy(from, wanted, now, out);
        }
        let (keeper, mut counter) = keeper!(self, out);
        let out = &mut counter;
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
            Body::OwnAt(owned) => {
                let keys: Vec<StoreKey> = owned.keys.into_iter().map(StoreKey).collect();
                keeper.on_owned(&keys);
            }
            Body::FreeAt(freed) => {
                let keys: Vec<StoreKey> = freed.keys.into_iter().map(StoreKey).collect();
                keeper.on_free(&keys, now, out);
            }
            _ => {}
        }
    }

    /// Takes in what the store says to the node itself.
    pub(crate) fn settle_own_news(&mut self, now: u64, out: &mut impl Outbox) {
        while let Some(news) = self.own_news.pop_front() {
            match news {
                OwnNews::Room(request, answer) => self.on_copy_room(request, answer, now, out),
                OwnNews::Fetched(request, answer) => self.on_lendable(request, answer, now, out),
                OwnNews::CopyGone(key) => {
                    self.on_copy_gone(key);
                    self.on_lent_gone(key, out);
                }
                OwnNews::Gone(key) => {
                    self.on_copy_gone(key);
                    self.on_lent_gone(key, out);
                }
            }
        }
    }

    pub(crate) fn on_disk(&mut self, news: DiskNews, now: u64, out: &mut impl Outbox) {
        let (keeper, mut counter) = keeper!(self, out);
        let out = &mut counter;
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
