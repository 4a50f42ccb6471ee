//! Following a log while it is written, renamed and removed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oxiray_wire::cluster::NodeInfo;
use oxiray_wire::control::{ClusterView, FilePart, from_node, to_node};

use super::*;
use crate::fake_node::{FakeNode, connected, session};

/// A log whose files are written, and renamed, while they are asked for.
struct Writer {
    /// Newest first: identity and bytes.
    files: VecDeque<(u64, Vec<u8>)>,
    older_parts: usize,
    last_identity: u64,
    /// All that was ever written.
    written: Vec<u8>,
    /// Before which questions a line is written, and before which the files are renamed.
    line_every: usize,
    rename_every: usize,
    lines_left: usize,
    /// The first rename is under way: the newest has its new name, and there is none of the old.
    is_between: bool,
}

impl Writer {
    fn new(older_parts: usize, lines: &[&[&str]]) -> Self {
        let mut this = Self {
            files: VecDeque::new(),
            older_parts,
            last_identity: 0,
            written: Vec::new(),
            line_every: usize::MAX,
            rename_every: usize::MAX,
            lines_left: usize::MAX,
            is_between: false,
        };
        for part in lines {
            this.rename();
            part.iter().for_each(|line| this.write(line));
        }
        this
    }

    fn write(&mut self, line: &str) {
        self.files[0].1.extend_from_slice(line.as_bytes());
        self.written.extend_from_slice(line.as_bytes());
    }

    fn rename(&mut self) {
        self.last_identity += 1;
        self.files.push_front((self.last_identity, Vec::new()));
        self.files.truncate(self.older_parts + 1);
    }

    fn before(&mut self, asked: usize) {
        if self.lines_left == 0 {
            return;
        }
        if asked % self.line_every == self.line_every - 1 {
            self.lines_left -= 1;
            self.write(&format!("line {asked}\n"));
        }
        if asked % self.rename_every == self.rename_every - 1 {
            self.rename();
        }
    }

    fn answer(&self, wanted: &ReadFile) -> FilePart {
        let name = wanted.path.strip_prefix("logs/log").expect("only the log is asked for");
        let number: usize = if name.is_empty() { 0 } else { name[1..].parse().unwrap() };
        let at = if self.is_between { number.wrapping_sub(1) } else { number };
        let request = wanted.request;
        let Some((identity, bytes)) = self.files.get(at) else {
            let refused = "there is no such file".to_owned();
            return FilePart { request, refused, missing: true, ..FilePart::default() };
        };
        let offset = (wanted.offset as usize).min(bytes.len());
        let end = (offset + wanted.most as usize).min(bytes.len());
        FilePart {
            request,
            offset: offset as u64,
            bytes: bytes[offset..end].to_vec(),
            size: bytes.len() as u64,
            identity: *identity,
            ..FilePart::default()
        }
    }
}

fn looked_at(writer: &Arc<Mutex<Writer>>) -> (Session, FakeNode) {
    let (observer, socket) = connected(Duration::from_secs(30));
    let writer = writer.clone();
    let mut files_asked = 0;
    let node = FakeNode::start(socket, move |_, question| match question {
        to_node::Body::Query(query) => {
            let nodes = vec![NodeInfo { number: 3, id: vec![0xab; 28], ..NodeInfo::default() }];
            let request = query.request;
            let view = ClusterView { request, nodes, ..ClusterView::default() };
            Some(from_node::Body::ClusterView(view))
        }
        to_node::Body::ReadFile(wanted) => {
            let mut writer = writer.lock().unwrap();
            writer.before(files_asked);
            files_asked += 1;
            Some(from_node::Body::FilePart(writer.answer(&wanted)))
        }
        _ => None,
    });
    (session(observer), node)
}

/// What is read from a place on until nothing follows, and how often something was missing.
fn read_all(session: &mut Session, file: &str, place: &mut LogPlace) -> (String, usize) {
    let (mut text, mut losses) = (String::new(), 0);
    loop {
        let chunk = session.read_on("abab", file, place, 7).expect("it can be read");
        *place = chunk.place;
        losses += usize::from(chunk.is_after_loss);
        if chunk.part.bytes.is_empty() {
            return (text, losses);
        }
        text.push_str(std::str::from_utf8(&chunk.part.bytes).expect("a text"));
    }
}

const THREE: &[&[&str]] = &[&["one\n", "two\n"], &["three\n"], &["four\n", "five\n"]];

#[test]
fn older_parts_come_first_and_what_is_added_later() {
    let writer = Arc::new(Mutex::new(Writer::new(3, THREE)));
    let (mut session, _node) = looked_at(&writer);
    let mut place = LogPlace::default();
    let read = read_all(&mut session, "log", &mut place);
    assert_eq!(read, ("one\ntwo\nthree\nfour\nfive\n".into(), 0));
    writer.lock().unwrap().write("six\n");
    writer.lock().unwrap().rename();
    writer.lock().unwrap().write("seven\n");
    writer.lock().unwrap().rename();
    assert_eq!(read_all(&mut session, "log", &mut place), ("six\nseven\n".into(), 0));
    assert_eq!(read_all(&mut session, "log", &mut place), (String::new(), 0));
}

#[test]
fn nothing_is_missed_or_read_twice_whenever_files_are_renamed() {
    for rename_every in 1..40 {
        let mut writer = Writer::new(1000, THREE);
        (writer.line_every, writer.rename_every, writer.lines_left) = (3, rename_every, 50);
        let writer = Arc::new(Mutex::new(writer));
        let (mut session, _node) = looked_at(&writer);
        let mut place = LogPlace::default();
        let mut text = String::new();
        while writer.lock().unwrap().lines_left > 0 {
            // As with a node that renames before each question, some of them fail.
            match session.read_on("abab", "log", &place, 7) {
                Ok(chunk) => {
                    assert!(!chunk.is_after_loss);
                    place = chunk.place;
                    text.push_str(std::str::from_utf8(&chunk.part.bytes).unwrap());
                }
                Err(error) => assert!(error.to_string().contains("faster"), "{error}"),
            }
        }
        let (rest, losses) = read_all(&mut session, "log", &mut place);
        let written = String::from_utf8(writer.lock().unwrap().written.clone()).unwrap();
        assert_eq!((text + &rest, losses), (written, 0), "{rename_every}");
    }
}

#[test]
fn what_was_removed_before_it_was_read_is_said_once() {
    let writer = Arc::new(Mutex::new(Writer::new(1, THREE)));
    let (mut session, _node) = looked_at(&writer);
    let mut place = LogPlace::default();
    let first = session.read_on("abab", "log", &place, 3).unwrap();
    assert_eq!(first.part.bytes, b"thr");
    place = first.place;
    for line in ["six\n", "seven\n"] {
        writer.lock().unwrap().rename();
        writer.lock().unwrap().write(line);
    }
    assert_eq!(read_all(&mut session, "log", &mut place), ("six\nseven\n".into(), 1));
    assert_eq!(read_all(&mut session, "log", &mut place), (String::new(), 0));
}

#[test]
fn a_part_that_was_read_to_its_end_may_go() {
    let writer = Arc::new(Mutex::new(Writer::new(1, THREE)));
    let (mut session, _node) = looked_at(&writer);
    let chunk = session.read_on("abab", "log", &LogPlace::default(), 100).unwrap();
    assert_eq!(chunk.part.bytes, b"three\n");
    writer.lock().unwrap().rename();
    let mut place = chunk.place;
    assert_eq!(read_all(&mut session, "log", &mut place), ("four\nfive\n".into(), 0));
}

#[test]
fn a_log_whose_newest_file_is_being_renamed_is_read_on_later() {
    let writer = Arc::new(Mutex::new(Writer::new(3, THREE)));
    let (mut session, _node) = looked_at(&writer);
    writer.lock().unwrap().is_between = true;
    let mut place = LogPlace::default();
    let read = read_all(&mut session, "log", &mut place);
    assert_eq!(read, ("one\ntwo\nthree\nfour\nfive\n".into(), 0));
    writer.lock().unwrap().is_between = false;
    writer.lock().unwrap().rename();
    writer.lock().unwrap().write("six\n");
    assert_eq!(read_all(&mut session, "log", &mut place), ("six\n".into(), 0));
}

#[test]
fn the_last_lines_are_counted_over_all_parts() {
    let writer = Arc::new(Mutex::new(Writer::new(3, THREE)));
    let (mut session, _node) = looked_at(&writer);
    let mut tail = |file: &str, lines| {
        let mut place = session.tail_of_log("abab", file, lines).unwrap();
        read_all(&mut session, file, &mut place).0
    };
    assert_eq!(tail("log", 0), "");
    assert_eq!(tail("log", 1), "five\n");
    assert_eq!(tail("log", 2), "four\nfive\n");
    assert_eq!(tail("log", 4), "two\nthree\nfour\nfive\n");
    assert_eq!(tail("log", 99), "one\ntwo\nthree\nfour\nfive\n");
    writer.lock().unwrap().write("no end");
    assert_eq!(tail("log", 1), "no end");
    writer.lock().unwrap().rename();
    assert_eq!(tail("log", 2), "five\nno end", "an empty file has no line");
}

#[test]
fn a_part_that_is_named_is_read_alone_wherever_it_moves() {
    let writer = Arc::new(Mutex::new(Writer::new(3, THREE)));
    let (mut session, _node) = looked_at(&writer);
    let chunk = session.read_on("abab", "log.2", &LogPlace::default(), 3).unwrap();
    writer.lock().unwrap().rename();
    let mut place = chunk.place;
    assert_eq!((chunk.part.bytes, chunk.is_over), (b"one".to_vec(), false));
    assert_eq!(read_all(&mut session, "log.2", &mut place), ("\ntwo\n".into(), 0));
    assert!(session.read_on("abab", "log.2", &place, 3).unwrap().is_over);
    writer.lock().unwrap().rename();
    let gone = session.read_on("abab", "log.2", &place, 3).unwrap();
    assert!(gone.is_over && gone.is_after_loss);
    let place = session.tail_of_log("abab", "log.2", 1).unwrap();
    let chunk = session.read_on("abab", "log.2", &place, 100).unwrap();
    assert_eq!(chunk.part.bytes, b"five\n");
}

#[test]
fn a_log_may_come_later_but_not_go() {
    let writer = Arc::new(Mutex::new(Writer::new(3, &[])));
    let (mut session, _node) = looked_at(&writer);
    let nothing = LogPlace::default();
    assert_eq!(session.tail_of_log("abab", "log", 3).unwrap(), nothing);
    assert_eq!(session.read_on("abab", "log", &nothing, 3).unwrap(), LogChunk::default());
    let missing = |error| matches!(error, Error::NoSuchFile(_));
    assert!(missing(session.read_on("abab", "log.1", &nothing, 3).unwrap_err()));
    writer.lock().unwrap().rename();
    writer.lock().unwrap().write("one\n");
    let chunk = session.read_on("abab", "log", &nothing, 100).unwrap();
    assert_eq!(chunk.part.bytes, b"one\n");
    writer.lock().unwrap().files.clear();
    assert!(missing(session.read_on("abab", "log", &chunk.place, 3).unwrap_err()));
}

#[test]
fn only_numbers_name_older_parts() {
    let parts = |file| Named::new(file).only;
    assert_eq!(["a.out.1", "a.out.12"].map(parts), [1, 12]);
    assert_eq!(["a.out", "a.out.0", "a.out.01", "a.out.+1", "a.out.", "1"].map(parts), [0; 6]);
}
