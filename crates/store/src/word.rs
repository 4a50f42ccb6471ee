//! A slot's word: generation, state and marks in 64 bits.

use oxiray_ids::StoreKey;

/// What a slot is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Nothing.
    Free,
    /// Its creator fills it.
    Writing,
    /// It can be looked at.
    Sealed,
    /// It is being written to disk, or taken away.
    Leaving,
    /// It is on disk alone.
    Away,
}

const STATE: u64 = 0x7;
const OWNED: u64 = 0x10;
const DOOMED: u64 = 0x20;
const IN_SLAB: u64 = 0x40;

/// The word of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(pub(crate) u64);

impl Word {
    /// A slot in its `generation`th use.
    pub(crate) fn new(generation: u64, state: State) -> Self {
        Self(generation << 8).with(state)
    }

    /// Which use of the slot.
    pub fn generation(self) -> u64 {
        self.0 >> 8
    }

    /// What the slot is used for.
    pub fn state(self) -> State {
        match self.0 & STATE {
            1 => State::Writing,
            2 => State::Sealed,
            3 => State::Leaving,
            4 => State::Away,
            _ => State::Free,
        }
    }

    /// Whether its owner has taken it up.
    pub fn is_owned(self) -> bool {
        self.0 & OWNED != 0
    }

    /// Whether it was freed, or its owner died: nobody may begin to look at it.
    pub fn is_doomed(self) -> bool {
        self.0 & DOOMED != 0
    }

    /// Whether it is in a slab, whose process takes its memory back by itself.
    pub fn is_in_slab(self) -> bool {
        self.0 & IN_SLAB != 0
    }

    /// Whether the slot holds the object of this name.
    pub fn is(self, key: StoreKey) -> bool {
        self.generation() == key.generation() && self.state() != State::Free
    }

    pub(crate) fn with(self, state: State) -> Self {
        let state = match state {
            State::Free => 0,
            State::Writing => 1,
            State::Sealed => 2,
            State::Leaving => 3,
            State::Away => 4,
        };
        Self(self.0 & !STATE | state)
    }

    pub(crate) fn owned(self) -> Self {
        Self(self.0 | OWNED)
    }

    pub(crate) fn unowned(self) -> Self {
        Self(self.0 & !OWNED)
    }

    pub(crate) fn doomed(self) -> Self {
        Self(self.0 | DOOMED)
    }

    pub(crate) fn in_slab(self) -> Self {
        Self(self.0 | IN_SLAB)
    }

    pub(crate) fn without_slab(self) -> Self {
        Self(self.0 & !IN_SLAB)
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{} {:?}", self.generation(), self.state())?;
        f.write_str(if self.is_owned() { " owned" } else { "" })?;
        f.write_str(if self.is_doomed() { " doomed" } else { "" })
    }
}
