//! Keys and values for users and libraries: here, if this node is alone; else the
//! control service has them.

use std::collections::BTreeMap;

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::{KEPT_ACTORS, Kv, KvVerb, to_control};
use oxiray_wire::control::from_node;

use crate::event::Outbox;
use crate::node::Node;

/// Values of a node that is alone, and questions of one that is not.
#[derive(Debug, Default)]
pub(crate) struct KeyValues {
    values: BTreeMap<(String, Vec<u8>), Vec<u8>>,
    /// What was asked of the control service: who asked, under which name.
    asked: BTreeMap<u64, (ProcessId, Kv)>,
    last: u64,
}

impl KeyValues {
    /// What was kept of an actor is of no use any more.
    pub(crate) fn forget_actor(&mut self, id: ActorId) {
        self.values.remove(&(KEPT_ACTORS.to_owned(), id.0.to_vec()));
    }

    fn answer(&mut self, question: Kv) -> Kv {
        let mut answer = Kv { request: question.request, verb: question.verb, ..Kv::default() };
        let key = (question.namespace.clone(), question.key.clone());
        match question.verb() {
            KvVerb::Get => answer.value = self.values.get(&key).cloned(),
            KvVerb::Put => {
                if question.wide || !self.values.contains_key(&key) {
                    self.values.insert(key, question.value.unwrap_or_default());
                    answer.count = 1;
                }
            }
            KvVerb::Delete => {
                let keys = if question.wide { self.beginning_with(&key) } else { vec![key] };
                let removed = keys.iter().filter(|key| self.values.remove(key).is_some());
                answer.count = removed.count() as u64;
            }
            KvVerb::List => {
                let keys = self.beginning_with(&key).into_iter();
                answer.keys = keys.map(|(_, key)| key).collect();
                fit(&mut answer);
            }
        }
        answer
    }

    fn beginning_with(&self, from: &(String, Vec<u8>)) -> Vec<(String, Vec<u8>)> {
        let rest = self.values.range(from.clone()..).map(|(key, _)| key);
        rest.take_while(|key| key.0 == from.0 && key.1.starts_with(&from.1)).cloned().collect()
    }
}

impl Node {
    pub(crate) fn on_kv(&mut self, from: ProcessId, question: Kv, out: &mut impl Outbox) {
        if self.member.is_none() {
            let answer = self.key_values.answer(question);
            return out.send(from, from_node::Body::Kv(answer));
        }
        self.key_values.last += 1;
        let request = self.key_values.last;
        self.key_values.asked.insert(request, (from, question.clone()));
        out.tell_control(to_control::Body::Kv(Kv { request, ..question }));
    }

    /// The control service answers.
    pub(crate) fn on_kv_answered(&mut self, answer: Kv, out: &mut impl Outbox) {
        if let Some((asker, question)) = self.key_values.asked.remove(&answer.request) {
            let mut answer = Kv { request: question.request, ..answer };
            fit(&mut answer);
            out.send(asker, from_node::Body::Kv(answer));
        }
    }

    /// The control service was away: what it has not answered is asked again.
    pub(crate) fn ask_kv_again(&self, out: &mut impl Outbox) {
        for (&request, (_, question)) in &self.key_values.asked {
            out.tell_control(to_control::Body::Kv(Kv { request, ..question.clone() }));
        }
    }

    pub(crate) fn forget_kv_asker(&mut self, process: ProcessId) {
        self.key_values.asked.retain(|_, (asker, _)| *asker != process);
    }
}

/// Leaves keys out that do not fit into a packet; how many there are is said.
fn fit(answer: &mut Kv) {
    const MOST_BYTES: usize = 100 << 10;
    if answer.verb() != KvVerb::List {
        return;
    }
    answer.count = answer.keys.len() as u64;
    let mut bytes = 0;
    answer.keys.retain(|key| {
        bytes += key.len() + 8;
        bytes <= MOST_BYTES
    });
}
