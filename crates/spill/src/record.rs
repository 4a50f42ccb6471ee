//! The bytes of a spill file, and how a damaged one is told from a good one.
//!
//! A file is a sequence of records. A record is an object's bytes followed by its *seal*: a magic
//! number, the number of the file, the object's length and its checksum, eight bytes each, least
//! significant first. The seal comes last so that a file is written from start to end in one pass,
//! with each piece hashed just before it is written, while it is in the processor's cache.
//!
//! - **R-1** The checksum is seeded with the file's number, and numbers are never used twice in a
//!   session: a file put in place of another is noticed even if both hold the same bytes.
//! - **R-2** A [`Place`] says all that a seal must say: reading compares, and trusts nothing that
//!   it finds in the file.

use xxhash_rust::xxh3::Xxh3;

/// Bytes of a seal.
pub(crate) const SEAL: usize = 32;
/// Bytes hashed at a time: they are still cached when they are written or after they were read.
pub(crate) const CHUNK: usize = 128 * 1024;

const MAGIC: [u8; 8] = *b"oxispill";

/// Where one spilled object lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Place {
    /// Number of the file, unique in a session.
    pub file: u64,
    /// Where its bytes begin in the file.
    pub offset: u64,
    /// How many there are.
    pub len: u64,
    /// XXH3 of the bytes, seeded with the file's number.
    pub checksum: u64,
}

impl Place {
    fn seal(&self) -> [u8; SEAL] {
        let mut seal = [0; SEAL];
        seal[..8].copy_from_slice(&MAGIC);
        seal[8..16].copy_from_slice(&self.file.to_le_bytes());
        seal[16..24].copy_from_slice(&self.len.to_le_bytes());
        seal[24..].copy_from_slice(&self.checksum.to_le_bytes());
        seal
    }
}

/// Bytes of the file that holds `objects`.
pub(crate) fn file_len(objects: &[&[u8]]) -> u64 {
    objects.iter().map(|object| (object.len() + SEAL) as u64).sum()
}

/// The next bytes of a file.
pub(crate) enum Piece<'a> {
    Payload(&'a [u8]),
    Seal([u8; SEAL]),
}

impl Piece<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Payload(bytes) => bytes,
            Self::Seal(seal) => seal,
        }
    }
}

/// A file's bytes, piece by piece; the objects' places once all have been taken.
pub(crate) struct Records<'a> {
    file: u64,
    objects: &'a [&'a [u8]],
    hash: Xxh3,
    /// Bytes already taken of the object under way.
    taken: usize,
    /// Where that object begins.
    offset: u64,
    places: Vec<Place>,
}

impl<'a> Records<'a> {
    pub(crate) fn new(file: u64, objects: &'a [&'a [u8]]) -> Self {
        let places = Vec::with_capacity(objects.len());
        Self { file, objects, hash: Xxh3::with_seed(file), taken: 0, offset: 0, places }
    }

    pub(crate) fn into_places(self) -> Vec<Place> {
        debug_assert_eq!(self.places.len(), self.objects.len(), "pieces were left");
        self.places
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let object: &'a [u8] = self.objects.get(self.places.len())?;
        let rest = &object[self.taken..];
        if !rest.is_empty() {
            let chunk = &rest[..rest.len().min(CHUNK)];
            self.hash.update(chunk);
            self.taken += chunk.len();
            return Some(Piece::Payload(chunk));
        }
        let len = object.len() as u64;
        let checksum = self.hash.digest();
        let place = Place { file: self.file, offset: self.offset, len, checksum };
        self.places.push(place);
        self.hash = Xxh3::with_seed(self.file);
        self.taken = 0;
        self.offset += len + SEAL as u64;
        Some(Piece::Seal(place.seal()))
    }
}

/// Compares what is read with what its place says was written.
pub(crate) struct Check {
    place: Place,
    hash: Xxh3,
}

impl Check {
    pub(crate) fn new(place: &Place) -> Self {
        Self { place: *place, hash: Xxh3::with_seed(place.file) }
    }

    /// What is wrong with `seal`, if anything.
    pub(crate) fn seal(&self, seal: &[u8; SEAL]) -> Result<(), &'static str> {
        let expected = self.place.seal();
        if *seal == expected {
            Ok(())
        } else if seal[..8] != expected[..8] {
            Err("was overwritten")
        } else if seal[8..16] != expected[8..16] {
            Err("was replaced by another file")
        } else {
            Err("holds another object in its place")
        }
    }

    /// Takes the next bytes of the object.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
    }

    /// What is wrong with the bytes, if anything.
    pub(crate) fn finish(&self) -> Result<(), &'static str> {
        if self.hash.digest() == self.place.checksum { Ok(()) } else { Err("was changed") }
    }
}
