//! What a session was when it ended: what its node service would have answered to who looks.
//!
//! A file of messages, each with its length before it. One that was killed has written none: its
//! logs and events are there, and that is all that is known.

use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

use oxiray_wire::control::{FromNode, from_node::Body};
use prost::Message;
use rustix::fs::OFlags;

use crate::directory::Directory;

pub(crate) const RECORD: &str = "record";

/// See the module documentation.
#[derive(Debug, Default)]
pub struct Record {
    /// What it said last.
    pub said: Vec<Body>,
    /// When; none: it was killed.
    pub at: Option<SystemTime>,
}

impl Record {
    /// Of the session in that directory.
    pub fn of(session: &Path) -> io::Result<Self> {
        let directory = Directory::at(session)?;
        let file = match directory.file(RECORD, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let at = file.metadata()?.modified().ok();
        let mut bytes = Vec::new();
        (&file).read_to_end(&mut bytes)?;
        let mut rest = &bytes[..];
        let mut said = Vec::new();
        // What comes after a part that cannot be read means nothing.
        while let Ok(message) = FromNode::decode_length_delimited(&mut rest) {
            said.extend(message.body);
            if rest.is_empty() {
                break;
            }
        }
        Ok(Self { said, at })
    }

    /// Leaves what was said last, at the end of a session.
    pub(crate) fn write(directory: &Directory, said: Vec<Body>) -> io::Result<()> {
        let encode = |body| FromNode::from(body).encode_length_delimited_to_vec();
        let bytes: Vec<u8> = said.into_iter().flat_map(encode).collect();
        directory.write(RECORD, &bytes)
    }
}
