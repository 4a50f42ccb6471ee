//! Questions about keys and values: the control service has them, and answers.

use std::collections::BTreeMap;

use oxiray_ids::ProcessId;
use oxiray_wire::cluster::{Kv, KvVerb, to_control};
use oxiray_wire::control::from_node;

use crate::event::Outbox;
use crate::node::Node;

/// Questions that were not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    /// Who asked, under which name.
    asked: BTreeMap<u64, (ProcessId, Kv)>,
    last: u64,
}

impl Questions {
    /// All before this one were answered, or are not waited for any more.
    fn answered(&self) -> u64 {
        self.asked.keys().next().copied().unwrap_or(self.last + 1)
    }
}

impl Node {
    pub(crate) fn on_kv(&mut self, from: ProcessId, question: Kv, out: &mut impl Outbox) {
        self.kv_questions.last += 1;
        let request = self.kv_questions.last;
        self.kv_questions.asked.insert(request, (from, question.clone()));
        let answered = self.kv_questions.answered();
        self.tell_control(to_control::Body::Kv(Kv { request, answered, ..question }), out);
    }

    /// The control service answers.
    pub(crate) fn on_kv_answered(&mut self, answer: Kv, out: &mut impl Outbox) {
        if let Some((asker, question)) = self.kv_questions.asked.remove(&answer.request) {
            let mut answer = Kv { request: question.request, ..answer };
            fit(&mut answer);
            out.send(asker, from_node::Body::Kv(answer));
        }
    }

    /// The control service was away: what it has not answered is asked again.
    pub(crate) fn ask_kv_again(&mut self, out: &mut impl Outbox) {
        let (asked, answered) = (self.kv_questions.asked.iter(), self.kv_questions.answered());
        let again: Vec<Kv> = asked
            .map(|(&request, (_, question))| Kv { request, answered, ..question.clone() })
            .collect();
        for question in again {
            self.tell_control(to_control::Body::Kv(question), out);
        }
    }

    pub(crate) fn forget_kv_asker(&mut self, process: ProcessId) {
        self.kv_questions.asked.retain(|_, (asker, _)| *asker != process);
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
