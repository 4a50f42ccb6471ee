//! Which nodes have which label, as sets of bits: a selector is answered for
//! sixty-four nodes at a time, without comparing strings node by node.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use crate::cluster::columns::place;
use crate::labels::{Operator, Selector};

/// A set of nodes: bit `slot % 64` of word `slot / 64`. Words at the end may be left out.
type Nodes = Vec<u64>;

#[derive(Debug, Default)]
struct Key {
    having: Nodes,
    by_value: HashMap<String, Nodes>,
}

#[derive(Debug, Default)]
pub(crate) struct LabelIndex {
    keys: HashMap<String, Key>,
}

impl LabelIndex {
    pub(crate) fn insert(&mut self, slot: u32, labels: &BTreeMap<String, String>) {
        for (key, value) in labels {
            let key = self.keys.entry_ref(key.as_str()).or_default();
            set(&mut key.having, slot);
            set(key.by_value.entry_ref(value.as_str()).or_default(), slot);
        }
    }

    pub(crate) fn remove(&mut self, slot: u32, labels: &BTreeMap<String, String>) {
        for (name, value) in labels {
            let Some(key) = self.keys.get_mut(name) else { continue };
            if key.by_value.get_mut(value).is_some_and(|nodes| clear(nodes, slot)) {
                key.by_value.remove(value);
            }
            if clear(&mut key.having, slot) {
                self.keys.remove(name);
            }
        }
    }

    /// Takes out of `nodes` those that a selector does not match. Says nothing
    /// about slots that no node has.
    pub(crate) fn narrow(&self, nodes: &mut [u64], selector: &Selector) {
        let key = self.keys.get(&selector.key);
        let word = |set: &Nodes, block: usize| set.get(block).copied().unwrap_or(0);
        let having = |block| key.map_or(0, |key| word(&key.having, block));
        let with_value = |values: &[String], block| {
            let sets = values.iter().filter_map(|value| key?.by_value.get(value));
            sets.fold(0, |mask, set| mask | word(set, block))
        };
        for (block, mask) in nodes.iter_mut().enumerate() {
            *mask &= match &selector.operator {
                Operator::In(values) => with_value(values, block),
                Operator::NotIn(values) => !with_value(values, block),
                Operator::Exists => having(block),
                Operator::DoesNotExist => !having(block),
            };
        }
    }
}

fn set(nodes: &mut Nodes, slot: u32) {
    let (block, bit) = place(slot);
    if nodes.len() <= block {
        nodes.resize(block + 1, 0);
    }
    nodes[block] |= 1 << bit;
}

/// Whether the set is empty now.
fn clear(nodes: &mut Nodes, slot: u32) -> bool {
    let (block, bit) = place(slot);
    if let Some(word) = nodes.get_mut(block) {
        *word &= !(1 << bit);
    }
    nodes.iter().all(|&word| word == 0)
}
