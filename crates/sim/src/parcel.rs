//! Values and arguments as bytes.

use oxiray_ids::{ObjectId, ProcessId};
use oxiray_wire::frame::RefName;

use crate::program::Job;

/// A value as it was written: the references in it are names.
pub(crate) struct Written {
    pub(crate) number: u64,
    pub(crate) inner: Vec<RefName>,
}

/// The arguments of a task, but for the values.
pub(crate) struct Arguments {
    pub(crate) job: Job,
    pub(crate) nested: Vec<RefName>,
    pub(crate) handles: Vec<RefName>,
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk().expect("it was written whole");
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn names(&mut self) -> Vec<RefName> {
        let [count] = self.take();
        let name = |_| RefName { id: ObjectId(self.take()), owner: ProcessId(self.number()) };
        (0..count).map(name).collect()
    }
}

fn write_names(names: &[RefName], out: &mut Vec<u8>) {
    out.push(names.len() as u8);
    for name in names {
        out.extend_from_slice(&name.id.0);
        out.extend_from_slice(&name.owner.0.to_le_bytes());
    }
}

pub(crate) fn write(number: u64, inner: &[RefName]) -> Vec<u8> {
    let mut out = number.to_le_bytes().to_vec();
    write_names(inner, &mut out);
    out
}

pub(crate) fn read(bytes: &[u8]) -> Written {
    let mut bytes = Bytes(bytes);
    Written { number: bytes.number(), inner: bytes.names() }
}

pub(crate) fn write_arguments(arguments: &Arguments) -> Vec<u8> {
    let Job { seed, depth, steps, quiet } = arguments.job;
    let mut out = seed.to_le_bytes().to_vec();
    out.extend([depth, steps, u8::from(quiet)]);
    write_names(&arguments.nested, &mut out);
    write_names(&arguments.handles, &mut out);
    out
}

pub(crate) fn read_arguments(bytes: &[u8]) -> Arguments {
    let mut bytes = Bytes(bytes);
    let seed = bytes.number();
    let [depth, steps, quiet] = bytes.take();
    let job = Job { seed, depth, steps, quiet: quiet != 0 };
    Arguments { job, nested: bytes.names(), handles: bytes.names() }
}
