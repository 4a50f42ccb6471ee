//! The growth of one log's files.

use std::io;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use crate::files::{Files, read_exactly, read_up_to};
use crate::format::{HEADER, Header, SLOT, chunk_name};
use crate::texts::TextReader;

/// Bytes asked for at once.
const PIECE: usize = 64 << 10;

/// How far the files of one log were read, and what their records refer to.
pub(crate) struct Tail {
    /// Number of the log at its node, as in the names of its files.
    pub(crate) number: u32,
    /// Which chunk is being read.
    pub(crate) chunk: u32,
    /// Slots of it that were read.
    read: u64,
    pub(crate) texts: TextReader,
    /// Names and homes by where they are in the texts.
    pub(crate) names: HashMap<u32, u32, RandomState>,
    pub(crate) homes: HashMap<u32, u32, RandomState>,
    /// Texts that were not there, in this update: the next one looks again.
    pub(crate) missing: HashSet<u32, RandomState>,
    /// How many chunks were listed, and not there any more.
    pub(crate) vanished: u64,
    /// It was read to its end since nobody writes it (E-6).
    pub(crate) is_read: bool,
    /// The place among the processes of the one whose records these are, once a header was read.
    pub(crate) process: Option<u32>,
    /// Nanoseconds to add to its times.
    pub(crate) to_wall: i64,
    /// The task that submits.
    pub(crate) parent: Option<u32>,
    /// The task just submitted.
    pub(crate) submitted: Option<u32>,
}

/// New slots of one chunk.
pub(crate) struct News {
    pub(crate) header: Header,
    pub(crate) slots: Vec<u8>,
    /// They are the first of their chunk.
    pub(crate) are_first: bool,
}

impl Tail {
    /// Files of log `number`, of which `chunk` is the first there is.
    pub(crate) fn new(number: u32, chunk: u32) -> Self {
        Self {
            number,
            chunk,
            read: 0,
            texts: TextReader::default(),
            names: HashMap::default(),
            homes: HashMap::default(),
            missing: HashSet::default(),
            vanished: 0,
            is_read: false,
            process: None,
            to_wall: 0,
            parent: None,
            submitted: None,
        }
    }

    /// The next new slots, if there are any; `last` is the newest chunk that was listed.
    pub(crate) fn next(&mut self, files: &mut dyn Files, last: u32) -> io::Result<Option<News>> {
        loop {
            let name = chunk_name(self.number, self.chunk);
            let header = read_exactly(files, &name, 0, HEADER)?;
            self.vanished += u64::from(header.is_none());
            let header = header.and_then(|bytes| Header::decode(&bytes));
            let header = header.filter(|header| header.log == self.number);
            if let Some(header) = header {
                let most = PIECE / SLOT;
                let wanted = header.count.saturating_sub(self.read).min(most as u64) as usize;
                let offset = (HEADER as u64).saturating_add(self.read.saturating_mul(SLOT as u64));
                let mut slots = read_up_to(files, &name, offset, wanted * SLOT)?;
                // The count may be beyond the end of a file that was cut.
                slots.truncate(slots.len() / SLOT * SLOT);
                let is_last = self.chunk >= last;
                if !slots.is_empty() || is_last {
                    let are_first = self.read == 0;
                    self.read += (slots.len() / SLOT) as u64;
                    return Ok(Some(News { header, slots, are_first }));
                }
            }
            // The next one was listed before this was read: nothing more comes to this one (E-6).
            if self.chunk >= last {
                return Ok(None);
            }
            self.begin_chunk(self.chunk + 1);
        }
    }

    /// Chunks before this one have gone.
    pub(crate) fn skip_to(&mut self, first: u32) {
        if self.chunk < first {
            self.begin_chunk(first);
        }
    }

    /// A chunk has texts of its own, and says again who submits.
    fn begin_chunk(&mut self, chunk: u32) {
        (self.chunk, self.read, self.parent) = (chunk, 0, None);
        self.forget_texts();
    }

    /// Lets go what reading needed, and can be read again.
    pub(crate) fn forget_texts(&mut self) {
        self.texts = TextReader::default();
        (self.names, self.homes) = (HashMap::default(), HashMap::default());
        self.missing.clear();
    }

    /// Slots that were not used: their record goes on, or needs what could not be had. They are
    /// read again.
    pub(crate) fn give_back(&mut self, slots: usize) {
        self.read -= slots as u64;
    }
}
