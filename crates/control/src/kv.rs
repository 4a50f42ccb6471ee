//! A table of keys and values, for users and libraries.
//!
//! A node whose question was not answered, because this service went away, asks it again. So what
//! was changed is remembered with the change, by the node and its name for the question, until the
//! node has the answer:
//!
//! - **K-1** a question changes something once, however often it is asked, and is answered alike.

use std::collections::{BTreeMap, BTreeSet};

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::{KEPT_ACTORS, Kv, KvVerb, from_control};

use crate::control::Control;
use crate::event::{Change, Outbox, PeerId, Table};
use crate::record;

/// Larger values are refused: they belong into the object store.
pub const MOST_VALUE_BYTES: usize = 10 << 20;

/// Of a node: what it asked and may ask again, and how many values that changed.
pub(crate) type Done = BTreeMap<u64, u64>;

impl Control {
    pub(crate) fn on_kv(&mut self, peer: PeerId, question: Kv, out: &mut impl Outbox) {
        let (request, verb) = (question.request, question.verb());
        let mut answer = Kv { request, verb: question.verb, ..Kv::default() };
        match verb {
            KvVerb::Get => {
                answer.value = self.kv.get(&(question.namespace, question.key)).cloned();
            }
            KvVerb::Put | KvVerb::Delete => answer.count = self.change_values(peer, question, out),
            KvVerb::List => answer.keys = self.keys_of(&question.namespace, &question.key),
        }
        out.send(peer, from_control::Body::Kv(answer));
    }

    /// How many values a question changes, or has changed when it was asked before (K-1).
    fn change_values(&mut self, peer: PeerId, question: Kv, out: &mut impl Outbox) -> u64 {
        let (request, answered) = (question.request, question.answered);
        let node = self.peers.get(&peer).copied().filter(|_| request > 0);
        let known = node.and_then(|node| self.kv_done.get(&node)?.get(&request).copied());
        if let Some(count) = known {
            return count;
        }
        let count = match question.verb() {
            KvVerb::Put => u64::from(self.put_value(question, out)),
            _ => self.delete_values(question, out),
        };
        if let Some(node) = node.filter(|_| count > 0) {
            let done = self.kv_done.entry(node).or_default();
            *done = done.split_off(&answered);
            done.insert(request, count);
            let key = record::kv_done_key(node);
            out.persist(Change::put(Table::Meta, key, record::kv_done_value(done)));
        }
        count
    }

    /// A node has left, and asks nothing again.
    pub(crate) fn forget_questions_of(&mut self, node: u32, out: &mut impl Outbox) {
        if self.kv_done.remove(&node).is_some() {
            out.persist(Change::delete(Table::Meta, record::kv_done_key(node)));
        }
    }

    /// Whether it was set.
    fn put_value(&mut self, question: Kv, out: &mut impl Outbox) -> bool {
        let value = question.value.unwrap_or_default();
        if value.len() > MOST_VALUE_BYTES {
            out.note(format!(
                "a value of {} bytes for key {:?} was refused: at most {MOST_VALUE_BYTES} bytes \
                 are kept. Larger values belong into the object store",
                value.len(),
                String::from_utf8_lossy(&question.key),
            ));
            return false;
        }
        if self.comes_too_late(&question.namespace, &question.key) {
            return false;
        }
        let key = (question.namespace, question.key);
        if !question.wide && self.kv.contains_key(&key) {
            return false;
        }
        out.persist(Change::put(Table::Kv, record::kv_key(&key.0, &key.1), value.clone()));
        self.kv.insert(key, value);
        true
    }

    /// Whether it is kept for an actor that has died meanwhile: nobody would remove it.
    fn comes_too_late(&self, namespace: &str, key: &[u8]) -> bool {
        let actor = key.get(..ActorId::LEN).and_then(ActorId::from_slice);
        namespace == KEPT_ACTORS && actor.is_some_and(|actor| self.dead.get(&actor).is_some())
    }

    /// Removes what was kept to start an actor again: its key, and those of the parts.
    pub(crate) fn forget_kept(&mut self, actor: ActorId, out: &mut impl Outbox) {
        let (namespace, key) = (KEPT_ACTORS.to_owned(), actor.0.to_vec());
        self.delete_values(Kv { namespace, key, wide: true, ..Kv::default() }, out);
    }

    /// A process is gone: what it kept for actors that it did not ask for any more goes.
    pub(crate) fn forget_kept_in_vain(&mut self, process: ProcessId, out: &mut impl Outbox) {
        let keys = self.keys_of(KEPT_ACTORS, &[]).into_iter();
        let ids = keys.filter_map(|key| ActorId::from_slice(key.get(..ActorId::LEN)?));
        let ids = ids.filter(|id| id.creator() == process && !self.actors.contains_key(id));
        for id in ids.collect::<BTreeSet<ActorId>>() {
            self.forget_kept(id, out);
        }
    }

    /// How many were removed.
    fn delete_values(&mut self, question: Kv, out: &mut impl Outbox) -> u64 {
        let keys = match question.wide {
            true => self.keys_of(&question.namespace, &question.key),
            false => vec![question.key],
        };
        let mut count = 0;
        for key in keys {
            let key = (question.namespace.clone(), key);
            if self.kv.remove(&key).is_some() {
                out.persist(Change::delete(Table::Kv, record::kv_key(&key.0, &key.1)));
                count += 1;
            }
        }
        count
    }

    fn keys_of(&self, namespace: &str, prefix: &[u8]) -> Vec<Vec<u8>> {
        let from = (namespace.to_owned(), prefix.to_vec());
        let rest = self.kv.range(from..).map(|(key, _)| key);
        let keys = rest.take_while(|(of, key)| of == namespace && key.starts_with(prefix));
        keys.map(|(_, key)| key.clone()).collect()
    }
}
