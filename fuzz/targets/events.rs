//! The files of the events, of any bytes: reading them ends, does not panic, and whatever looks at the
//! history of it gets something (E-4).
#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use oxiray_events::{FileInfo, Files, History, texts, timeline, trace};

/// One process's records and texts, and the node service's.
#[derive(Clone)]
struct Held([(&'static str, Vec<u8>); 4]);

impl Files for Held {
    fn list(&mut self) -> io::Result<Vec<FileInfo>> {
        let info = |(name, bytes): &(&str, Vec<u8>)| FileInfo {
            name: (*name).into(),
            size: bytes.len() as u64,
        };
        Ok(self.0.iter().map(info).collect())
    }

    fn read(&mut self, name: &str, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        let Some((_, bytes)) = self.0.iter().find(|(held, _)| *held == name) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let rest = bytes.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        Ok(rest[..most.min(rest.len())].to_vec())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut files = cut(bytes);
    let mut history = History::new();
    let _ = history.update(0, &mut files);
    let _ = history.update(0, &mut files);
    history.summary();
    for task in history.tasks() {
        assert!(history.get(task.id()).is_some());
        let _ = (task.needs(), task.feeds(), task.parent(), task.attempts().count());
    }
    for (from, to) in [(0, u64::MAX), history.extent_ns().unwrap_or_default(), (5, 2)] {
        timeline::view(&history, from, to, 100, &timeline::Filter::default());
    }
    history.node_left(0, 1);
    let text = |place| texts::read(&mut files, place).ok().flatten();
    let mut written = Vec::new();
    trace::write(&history, 0, text, &mut written).expect("memory takes all");
    serde_json::from_slice::<serde_json::Value>(&written).expect("a trace is JSON");
});

/// The bytes as four files: two numbers say where texts begin, the rest is in halves.
fn cut(bytes: &[u8]) -> Held {
    let [a, b, rest @ ..] = bytes else { return Held(Default::default()) };
    let (ours, service) = rest.split_at(rest.len() / 2);
    let (records, words) = ours.split_at(ours.len() * usize::from(*a) / 256);
    let (ends, others) = service.split_at(service.len() * usize::from(*b) / 256);
    let held = |name, bytes: &[u8]| (name, bytes.to_vec());
    Held([held("2.0", records), held("2.0.text", words), held("0.0", ends), held("0.0.text", others)])
}
