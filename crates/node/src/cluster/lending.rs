//! Objects of this node that other nodes read. A grant holds the bytes where
//! they are until its reader is done. When several nodes want an object, few read
//! it here at a time; the others are sent to those that have it by then, so that
//! it spreads as a tree.

use std::collections::{BTreeMap, HashMap, VecDeque};

use oxiray_ids::{Origin, StoreKey};
use oxiray_store::Refusal;
use oxiray_wire::cluster::{Keys, Pull, PullAnswer, PullDone, between_nodes};
use oxiray_wire::control::{Lacking, Refused};

use super::tell;
use crate::event::Outbox;
use crate::node::Node;
use crate::storage::{keeper, refused};

/// Nodes that read an object here at the same time.
const READERS_AT_ONCE: usize = 2;

/// Somebody wants to read.
#[derive(Clone, Copy, Debug)]
struct Reader {
    node: u32,
    request: u64,
}

#[derive(Debug)]
struct Grant {
    node: u32,
    key: StoreKey,
}

/// What is known of an object that others read.
#[derive(Debug, Default)]
struct Lent {
    reading: usize,
    waiting: VecDeque<Reader>,
    /// Nodes that have it, too; the next one to send somebody to comes first.
    holders: VecDeque<u32>,
}

/// Everything that others read here.
#[derive(Debug, Default)]
pub(crate) struct Lending {
    grants: BTreeMap<u64, Grant>,
    objects: HashMap<StoreKey, Lent>,
    /// Readers whose object is being brought into memory, by our name for that.
    fetching: HashMap<u64, (StoreKey, Reader)>,
    last: u64,
}

fn refuse(reader: Reader, why: Refused, out: &mut impl Outbox) {
    let request = reader.request;
    let answer = PullAnswer { request, refused: Some(why), ..PullAnswer::default() };
    tell(reader.node, between_nodes::Body::PullAnswer(answer), out);
}

impl Node {
    /// Another node wants to read an object.
    pub(crate) fn on_pull(&mut self, node: u32, pull: Pull, now: u64, out: &mut impl Outbox) {
        let reader = Reader { node, request: pull.request };
        let wanted = pull.origin.unwrap_or_default();
        let origin = Origin { node: wanted.node, key: StoreKey(wanted.key) };
        let member = &mut self.member;
        let key = match origin.node == self.number {
            true => Some(origin.key),
            false => member.copies.complete(origin),
        };
        let Some(key) = key else {
            let text = "it is not at this node any more".to_owned();
            return refuse(reader, Refused::new(Lacking::Object, text), out);
        };
        self.serve_reader(key, reader, now, out);
    }

    fn serve_reader(&mut self, key: StoreKey, reader: Reader, now: u64, out: &mut impl Outbox) {
        let lending = &mut self.member.lending;
        let lent = lending.objects.entry(key).or_default();
        lent.holders.retain(|holder| *holder != reader.node);
        if lent.reading >= READERS_AT_ONCE {
            match lent.holders.pop_front() {
                Some(holder) => {
                    lent.holders.push_back(holder);
                    let answer = PullAnswer {
                        request: reader.request,
                        elsewhere: holder,
                        ..PullAnswer::default()
                    };
                    tell(reader.node, between_nodes::Body::PullAnswer(answer), out);
                }
                None => lent.waiting.push_back(reader),
            }
            return;
        }
        lent.reading += 1;
        lending.last += 1;
        let fetch = lending.last;
        lending.fetching.insert(fetch, (key, reader));
        let gateway = self.gateway();
        let (keeper, mut counter) = keeper!(self, out);
        keeper.on_fetch(gateway, fetch, key, now, &mut counter);
    }

    /// An object that somebody wants to read is in memory, or is not to be had.
    pub(crate) fn on_lendable(
        &mut self,
        fetch: u64,
        answer: Result<(), Refusal>,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let member = &mut self.member;
        let Some((key, reader)) = member.lending.fetching.remove(&fetch) else {
            return;
        };
        let here = member.infos.contains_key(&reader.node);
        let held = answer.and_then(|()| match here {
            true => self.keeper.hold(key).ok_or_else(Refusal::freed),
            false => Err(Refusal::lost("")),
        });
        match held {
            Ok(extent) => {
                let lending = &mut self.member.lending;
                lending.last += 1;
                let grant = lending.last;
                lending.grants.insert(grant, Grant { node: reader.node, key });
                out.lend(grant, extent);
                let answer = PullAnswer {
                    request: reader.request,
                    grant,
                    len: extent.len,
                    ..PullAnswer::default()
                };
                tell(reader.node, between_nodes::Body::PullAnswer(answer), out);
            }
            Err(why) => {
                if here {
                    refuse(reader, refused(why), out);
                }
                self.next_reader(key, now, out);
            }
        }
    }

    /// A node is done with reading.
    pub(crate) fn on_pull_done(
        &mut self,
        node: u32,
        done: PullDone,
        now: u64,
        out: &mut impl Outbox,
    ) {
        let lending = &mut self.member.lending;
        let Some(grant) = lending.grants.get(&done.grant).filter(|grant| grant.node == node) else {
            return;
        };
        let key = grant.key;
        lending.grants.remove(&done.grant);
        if let (true, Some(lent)) = (done.complete, lending.objects.get_mut(&key)) {
            lent.holders.push_front(node);
        }
        self.end_grant(done.grant, key, now, out);
    }

    /// A node has copies of objects of this one that it read elsewhere.
    pub(crate) fn on_holds(&mut self, node: u32, held: &Keys, out: &mut impl Outbox) {
        let number = self.number;
        if held.node != number {
            return;
        }
        let member = &mut self.member;
        let (here, freed): (Vec<u64>, Vec<u64>) =
            held.keys.iter().partition(|key| self.keeper.has(StoreKey(**key)));
        for key in here {
            let holders = &mut member.lending.objects.entry(StoreKey(key)).or_default().holders;
            if !holders.contains(&node) {
                holders.push_back(node);
            }
        }
        if !freed.is_empty() {
            tell(node, between_nodes::Body::Freed(Keys { keys: freed, node: number }), out);
        }
    }

    fn end_grant(&mut self, grant: u64, key: StoreKey, now: u64, out: &mut impl Outbox) {
        out.end_lending(grant);
        let (keeper, mut counter) = keeper!(self, out);
        keeper.let_go(key, now, &mut counter);
        self.next_reader(key, now, out);
    }

    /// One reader less: whoever waits has its turn.
    fn next_reader(&mut self, key: StoreKey, now: u64, out: &mut impl Outbox) {
        let lending = &mut self.member.lending;
        let Some(lent) = lending.objects.get_mut(&key) else {
            return;
        };
        lent.reading -= 1;
        let waiting = std::mem::take(&mut lent.waiting);
        if lent.reading == 0 && waiting.is_empty() && lent.holders.is_empty() {
            lending.objects.remove(&key);
        }
        for reader in waiting {
            self.serve_reader(key, reader, now, out);
        }
    }

    /// A node is gone, and reads nothing any more.
    pub(crate) fn end_lending_to(&mut self, node: u32, now: u64, out: &mut impl Outbox) {
        let lending = &mut self.member.lending;
        for lent in lending.objects.values_mut() {
            lent.waiting.retain(|reader| reader.node != node);
            lent.holders.retain(|holder| *holder != node);
        }
        for (_, reader) in lending.fetching.values_mut() {
            if reader.node == node {
                reader.node = 0; // It may come back, and ask anew.
            }
        }
        let theirs = lending.grants.iter().filter(|(_, grant)| grant.node == node);
        let theirs: Vec<(u64, StoreKey)> = theirs.map(|(id, grant)| (*id, grant.key)).collect();
        for (grant, key) in theirs {
            let lending = &mut self.member.lending;
            lending.grants.remove(&grant);
            self.end_grant(grant, key, now, out);
        }
    }

    /// An object of this node is gone: so must its copies be.
    pub(crate) fn on_lent_gone(&mut self, key: StoreKey, out: &mut impl Outbox) {
        let node = self.number;
        if let Some(lent) = self.member.lending.objects.remove(&key) {
            for holder in lent.holders {
                let keys = Keys { keys: vec![key.0], node };
                tell(holder, between_nodes::Body::Freed(keys), out);
            }
            for reader in lent.waiting {
                let text = "it was freed".to_owned();
                refuse(reader, Refused::new(Lacking::Object, text), out);
            }
        }
    }
}
