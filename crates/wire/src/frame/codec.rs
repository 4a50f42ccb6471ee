//! Reading and writing the fields of frames.

use oxiray_ids::{ObjectId, Origin, ProcessId, StoreKey};

use super::{Body, FailureCode, RefName, Value, Values};

/// Why bytes are no frame.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A field or list reaches beyond the end.
    #[error("a frame ends too early")]
    TooShort,
    /// Bytes are left over.
    #[error("a frame has {0} bytes too many")]
    TooLong(usize),
    /// A kind of another version, or no frame at all.
    #[error("unknown kind of frame: {0}")]
    UnknownKind(u8),
    /// A choice that does not exist.
    #[error("unknown tag in a frame: {0}")]
    BadTag(u8),
    /// Text that is not UTF-8.
    #[error("text in a frame is not UTF-8")]
    BadText,
}

const INLINE: u8 = 0;
const STORED: u8 = 1;
const FAILED: u8 = 2;

impl Value<'_> {
    /// The shortest encoding of a value: bounds what a claimed count may allocate.
    pub(super) const MIN_LEN: usize = 1 + 4 + 4;
}

pub(super) struct Writer<'a>(pub(super) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    pub(super) fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).expect("fewer than four billion"));
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.raw(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(super) fn kind_and(&mut self, kind: u8, bytes: &[u8]) {
        self.u8(kind);
        self.raw(bytes);
    }

    pub(super) fn names(&mut self, names: &[RefName]) {
        self.count(names.len());
        for name in names {
            self.raw(&name.id.0);
            self.u64(name.owner.0);
        }
    }

    pub(super) fn value(&mut self, value: &Value<'_>) {
        match value.body {
            Body::Inline(bytes) => {
                self.u8(INLINE);
                self.bytes(bytes);
            }
            Body::Stored { origin, len } => {
                self.u8(STORED);
                self.u32(origin.node);
                self.u64(origin.key.0);
                self.u64(len);
            }
            Body::Failed { code, message, data } => {
                self.u8(FAILED);
                self.u8(code as u8);
                self.text(message);
                self.bytes(data);
            }
        }
        self.names(&value.contained);
    }
}

pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    fn raw(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(DecodeError::TooShort)?;
        self.0 = rest;
        Ok(taken)
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(DecodeError::TooShort)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Fields of `N` bytes in all. That they are there is checked here, once: the compiler sees
    /// that none of them can be missing any more.
    #[inline]
    pub(super) fn head<const N: usize>(&mut self) -> Result<Reader<'a>, DecodeError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(DecodeError::TooShort)?;
        self.0 = rest;
        Ok(Reader(taken))
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_le_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.u32()?;
        self.raw(len as usize)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::BadText)
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// How many items a list has that take at least `min_len` bytes each: a count that
    /// cannot be true is refused before anything is allocated for it.
    #[inline]
    fn count(&mut self, min_len: usize) -> Result<usize, DecodeError> {
        let count = self.u32()? as usize;
        if count > 0 && count > self.0.len() / min_len {
            return Err(DecodeError::TooShort);
        }
        Ok(count)
    }

    /// A list whose items take at least `min_len` bytes each.
    #[inline]
    pub(super) fn list<T>(
        &mut self,
        min_len: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.count(min_len)?;
        let mut items = Vec::new();
        if count > 0 {
            items.reserve_exact(count);
            for _ in 0..count {
                items.push(item(self)?);
            }
        }
        Ok(items)
    }

    #[inline]
    pub(super) fn values(&mut self) -> Result<Values<'a>, DecodeError> {
        let count = self.count(Value::MIN_LEN)?;
        let mut values = Values::new();
        if count > 0 {
            values.reserve_exact(count);
            for _ in 0..count {
                values.push(self.value()?);
            }
        }
        Ok(values)
    }

    pub(super) fn names(&mut self) -> Result<Vec<RefName>, DecodeError> {
        self.list(ObjectId::LEN + 8, |reader| {
            Ok(RefName { id: ObjectId(reader.array()?), owner: ProcessId(reader.u64()?) })
        })
    }

    pub(super) fn value(&mut self) -> Result<Value<'a>, DecodeError> {
        let body = match self.u8()? {
            INLINE => Body::Inline(self.bytes()?),
            STORED => {
                let origin = Origin { node: self.u32()?, key: StoreKey(self.u64()?) };
                Body::Stored { origin, len: self.u64()? }
            }
            FAILED => {
                let code = self.u8()?;
                Body::Failed {
                    code: FailureCode::from_u8(code).ok_or(DecodeError::BadTag(code))?,
                    message: self.text()?,
                    data: self.bytes()?,
                }
            }
            tag => return Err(DecodeError::BadTag(tag)),
        };
        Ok(Value { body, contained: self.names()? })
    }

    pub(super) fn finish(self) -> Result<(), DecodeError> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(DecodeError::TooLong(left)),
        }
    }
}
