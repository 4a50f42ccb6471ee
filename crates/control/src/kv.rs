//! A table of keys and values, for users and libraries.

use oxiray_ids::ActorId;
use oxiray_wire::cluster::{KEPT_ACTORS, Kv, KvVerb, from_control};

use crate::control::Control;
use crate::event::{Change, Outbox, PeerId, Table};
use crate::record;

/// Larger values are refused: they belong into the object store.
pub const MOST_VALUE_BYTES: usize = 10 << 20;

impl Control {
    pub(crate) fn on_kv(&mut self, peer: PeerId, question: Kv, out: &mut impl Outbox) {
        let mut answer = Kv { request: question.request, verb: question.verb, ..Kv::default() };
        match question.verb() {
            KvVerb::Get => {
                answer.value = self.kv.get(&(question.namespace, question.key)).cloned();
            }
            KvVerb::Put => answer.count = u64::from(self.put_value(question, out)),
            KvVerb::Delete => answer.count = self.delete_values(question, out),
            KvVerb::List => answer.keys = self.keys_of(&question.namespace, &question.key),
        }
        out.send(peer, from_control::Body::Kv(answer));
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
