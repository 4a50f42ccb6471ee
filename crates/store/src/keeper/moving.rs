//! Objects that go from one node's store to another's, because theirs is about to leave.

use oxiray_ids::{ProcessId, StoreKey};

use super::Keeper;
use crate::word::{State, Word};

/// Objects of processes of other nodes, in a store that is about to go.
#[derive(Debug, Default)]
pub struct ToMove {
    /// Names, lengths and owners.
    pub objects: Vec<(StoreKey, u64, ProcessId)>,
    /// There are some that their owners have not taken up yet, or that are not complete.
    pub more: bool,
}

impl Keeper {
    /// What processes of other nodes have here, and what they will have. Looks at every object.
    pub fn to_move(&self) -> ToMove {
        let mut all = ToMove::default();
        let own = self.entries.iter().filter(|(_, entry)| !entry.is_copy).map(|(slot, _)| *slot);
        let carved = self.slabs.values().flat_map(|slab| slab.slots.iter().copied());
        for slot in own.chain(carved) {
            let word = self.table.word(slot);
            let (owner, _) = self.table.parties(slot);
            if word.state() == State::Free || word.is_doomed() || !self.foreign.contains(&owner) {
                continue;
            }
            if word.state() == State::Writing || !word.is_owned() {
                all.more = true;
                continue;
            }
            let key = StoreKey::new(slot, word.generation());
            all.objects.push((key, self.table.extent(slot).len, owner));
        }
        all.objects.sort_unstable_by_key(|(key, ..)| *key);
        all.objects.dedup_by_key(|(key, ..)| *key);
        all
    }

    /// A copy becomes the object itself, of an owner who has yet to hear of it; `false`: it is gone.
    pub fn adopt(&mut self, key: StoreKey, owner: ProcessId) -> bool {
        if !self.has(key) || !self.lives(&owner) {
            return false;
        }
        let slot = key.slot();
        let Some(entry) = self.entries.get_mut(&slot) else {
            return false;
        };
        entry.is_copy = false;
        let (_, creator) = self.table.parties(slot);
        self.table.set_parties(slot, owner, creator);
        self.table.update(slot, |word: Word| Some(word.unowned()));
        true
    }

    /// Whether the owner of an object that was adopted has taken it up, or does not want it.
    pub fn is_settled(&self, key: StoreKey) -> bool {
        !self.has(key) || self.table.word(key.slot()).is_owned()
    }
}
