//! Packages of runtime environments, read from whichever node has them.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use oxiray_wire::control::{FilePart, MOST_OF_FILE, ReadFile, from_node::Body, to_node};

use crate::error::{Error, Result};
use crate::observer::Question;
use crate::session::Session;

/// Pieces that are asked for at once.
const AT_ONCE: u64 = 32;

impl Session {
    /// Writes a package of the cluster into a file; false: no node has it.
    pub fn fetch_package(&mut self, name: &str, to: &Path) -> Result<bool> {
        let own = self.observer.node();
        let nodes = self.view()?.nodes.into_iter().filter(|node| node.left.is_empty());
        let others: Vec<u32> = nodes.map(|node| node.number).filter(|node| *node != own).collect();
        let mut holders = self.holders(name, &others)?;
        // Each begins with another one, so that those that have it share the work.
        let turn = holders.len().max(1);
        holders.rotate_left(std::process::id() as usize % turn);
        let mut last = None;
        for (node, size) in holders {
            match self.copy_package(node, name, size, to) {
                Ok(()) => return Ok(true),
                Err(error) => last = Some(error), // It may have left meanwhile.
            }
        }
        last.map_or(Ok(false), Err)
    }

    /// Who has a package, and its size.
    fn holders(&mut self, name: &str, nodes: &[u32]) -> Result<Vec<(u32, u64)>> {
        let question = |&node: &u32| Question { node, body: wanted(name, 0, 0) };
        let mut holders = Vec::new();
        self.observer.ask(nodes.iter().map(question).collect(), |at, body| match body {
            Body::FilePart(part) => {
                if part.refused.is_empty() {
                    holders.push((nodes[at], part.size));
                }
                true
            }
            _ => false,
        })?;
        holders.sort_unstable();
        Ok(holders)
    }

    fn copy_package(&mut self, node: u32, name: &str, size: u64, to: &Path) -> Result<()> {
        let unwritten = |error: std::io::Error| Error::File(format!("{}: {error}", to.display()));
        let mut file = File::create(to).map_err(unwritten)?;
        let piece = u64::from(MOST_OF_FILE);
        for first in (0..size).step_by((piece * AT_ONCE) as usize) {
            let offsets = (0..AT_ONCE).map(|at| first + at * piece).filter(|at| *at < size);
            let offsets: Vec<u64> = offsets.collect();
            let body = |&offset: &u64| wanted(name, offset, MOST_OF_FILE);
            let questions = offsets.iter().map(|at| Question { node, body: body(at) }).collect();
            let mut parts: Vec<FilePart> = vec![FilePart::default(); offsets.len()];
            let failures = self.observer.ask(questions, |at, body| match body {
                Body::FilePart(part) => {
                    parts[at] = part;
                    true
                }
                _ => false,
            })?;
            if let Some(failure) = failures.into_iter().flatten().next() {
                return Err(failure);
            }
            for (offset, part) in offsets.iter().zip(parts) {
                let whole = piece.min(size - offset) == part.bytes.len() as u64;
                if !part.refused.is_empty() || !whole {
                    return Err(Error::File(format!("{name} could not be read: {}", part.refused)));
                }
                file.write_all(&part.bytes).map_err(unwritten)?;
            }
        }
        Ok(())
    }
}

fn wanted(name: &str, offset: u64, most: u32) -> to_node::Body {
    let path = format!("packages/{name}");
    to_node::Body::ReadFile(ReadFile { path, offset, most, ..ReadFile::default() })
}
