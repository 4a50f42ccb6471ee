//! What a worker is given with a lease, as the words that every task's frame carries: its devices,
//! its threads, and the placement group that it works in.
//!
//! ```text
//! words: devices' numbers; then, of several threads: THREADS and how many; then, in a group:
//!        GROUP, with CAPTURES or without, and five words of the group's id (little endian, padded
//!        with zeros)
//! ```

use oxiray_ids::GroupId;

/// No device has so high a number.
const GROUP: u32 = 1 << 31;
/// Nor one of these.
const THREADS: u32 = 1 << 30;
/// What runs there has its own tasks and actors in the group, too.
const CAPTURES: u32 = 1;
const ID_WORDS: usize = GroupId::LEN.div_ceil(4);

/// See the module documentation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// Numbers of devices.
    pub devices: Vec<u32>,
    /// For numerical libraries: see [`threads_of`](crate::control::threads_of).
    pub threads: u32,
    /// The group.
    pub group: Option<GroupId>,
    /// Whether what runs there has its own tasks and actors in the group, too.
    pub captures: bool,
}

impl Default for Given {
    fn default() -> Self {
        Self { devices: Vec::new(), threads: 1, group: None, captures: false }
    }
}

impl Given {
    /// As a frame carries it.
    pub fn into_words(self) -> Vec<u32> {
        let mut words = self.devices;
        if self.threads > 1 {
            words.push(THREADS | self.threads.min(THREADS - 1));
        }
        if let Some(group) = self.group {
            words.push(GROUP | if self.captures { CAPTURES } else { 0 });
            let mut bytes = [0; 4 * ID_WORDS];
            bytes[..GroupId::LEN].copy_from_slice(&group.0);
            let word = |part: &[u8]| u32::from_le_bytes(part.try_into().expect("four bytes"));
            words.extend(bytes.chunks_exact(4).map(word));
        }
        words
    }

    /// Out of a frame; what is not understood is left out.
    pub fn from_words(words: &[u32]) -> Self {
        let end = words.iter().position(|word| word & GROUP != 0).unwrap_or(words.len());
        let (own, group) = words.split_at(end);
        let is_device = |word: &&u32| *word & THREADS == 0;
        let devices = own.iter().filter(is_device).copied().collect();
        let threads =
            own.iter().find(|word| !is_device(word)).map_or(1, |word| (word & !THREADS).max(1));
        let Some((mark, id)) = group.split_first() else {
            return Self { devices, threads, ..Self::default() };
        };
        let bytes: Vec<u8> = id.iter().flat_map(|word| word.to_le_bytes()).collect();
        let group = bytes.get(..GroupId::LEN).and_then(GroupId::from_slice);
        Self { devices, threads, group, captures: group.is_some() && mark & CAPTURES != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_was_given() {
        let group = GroupId::new(oxiray_ids::JobId([1; 4]), oxiray_ids::ProcessId(7), 3);
        for given in [
            Given::default(),
            Given { devices: vec![0, 3], ..Given::default() },
            Given { group: Some(group), ..Given::default() },
            Given { threads: 8, ..Given::default() },
            Given { devices: vec![4095], threads: 2, group: Some(GroupId::NIL), captures: true },
        ] {
            assert_eq!(Given::from_words(&given.clone().into_words()), given);
        }
        assert_eq!(Given::from_words(&[1, GROUP | CAPTURES, 5]).devices, [1]);
        assert_eq!(Given::from_words(&[1, GROUP | CAPTURES, 5]).group, None);
        assert_eq!(Given::from_words(&[THREADS]), Given::default(), "none are one");
    }
}
