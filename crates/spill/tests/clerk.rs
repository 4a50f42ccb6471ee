//! The clerk with a real arena and real files.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use oxiray_spill::{Clerk, Done, Job, Place, SpillError, Spillway, Target};
use oxiray_sys::memory::{Mapping, memory_file};

const ARENA: usize = 1 << 20;

struct Setting {
    directory: PathBuf,
    arena: Arc<Mapping>,
    spillway: Arc<Spillway>,
    clerk: Clerk,
    woken: Receiver<()>,
}

impl Setting {
    fn new(name: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("clerk-test-{}-{name}", std::process::id()));
        let target = Target::Directories(vec![directory.clone()]);
        let spillway = Arc::new(Spillway::open(&target, "clerk").expect("a directory"));
        let file = memory_file("arena", ARENA).expect("memory");
        let arena = Arc::new(Mapping::new(&file, ARENA).expect("mapped"));
        let (wake, woken) = channel();
        let clerk = Clerk::start(spillway.clone(), arena.clone(), move || {
            let _ = wake.send(());
        });
        Self { directory, arena, spillway, clerk, woken }
    }

    /// Waits until the clerk has done something. Exercises C-3.
    fn done(&self) -> Done {
        self.woken.recv_timeout(Duration::from_secs(60)).expect("the clerk answers");
        let mut done = self.clerk.completed();
        assert_eq!(done.len(), 1);
        done.remove(0)
    }

    fn spill(&self, batch: &[(u64, u64, u64)]) -> Vec<(u64, Place)> {
        self.clerk.submit(Job::Write { batch: batch.to_vec() });
        match self.done() {
            Done::Written { batch, nanoseconds } => {
                assert!(nanoseconds > 0);
                batch
            }
            other => panic!("not written: {other:?}"),
        }
    }

    fn restore(&self, key: u64, place: Place, offset: u64) -> Done {
        self.clerk.submit(Job::Read { key, place, offset });
        self.done()
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("our threads").flatten();
    tasks
        .filter(|task| {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            name.starts_with("spill-")
        })
        .count()
}

/// One test, because it counts the threads of the process.
#[test]
fn objects_leave_the_arena_and_come_back() {
    let setting = Setting::new("round");
    assert_eq!(threads(), 0, "an idle session pays for no threads");
    setting.arena.write(64, &[1; 1000]);
    setting.arena.write(4096, &[2; 500_000]);
    let places = setting.spill(&[(11, 64, 1000), (12, 4096, 500_000), (13, 0, 0)]);
    assert_eq!(threads(), 1);
    let keys: Vec<_> = places.iter().map(|&(key, _)| key).collect();
    assert_eq!(keys, [11, 12, 13]);
    setting.arena.write(0, &[0; ARENA]);

    assert!(matches!(setting.restore(12, places[1].1, 8192), Done::Read { key: 12, .. }));
    assert!(matches!(setting.restore(11, places[0].1, 0), Done::Read { key: 11, .. }));
    assert!(matches!(setting.restore(13, places[2].1, 77), Done::Read { key: 13, .. }));
    assert_eq!(threads(), 2);
    assert!(setting.arena.bytes(0, 1000).iter().all(|&byte| byte == 1));
    assert!(setting.arena.bytes(1000, 7192).iter().all(|&byte| byte == 0), "and nothing else");
    assert!(setting.arena.bytes(8192, 500_000).iter().all(|&byte| byte == 2));

    // C-2: the deletion comes before the next write.
    setting.clerk.submit(Job::Delete { place: places[0].1 });
    setting.spill(&[(14, 0, 10)]);
    assert_eq!(setting.spillway.usage().objects, 3);
    let lost = setting.restore(11, places[0].1, 0);
    assert!(matches!(lost, Done::NotRead { key: 11, error: SpillError::Lost { .. } }));

    outside_of_the_arena_is_refused(&setting, places[1].1);
    a_made_up_place_is_lost(&setting);

    let Setting { directory, spillway, .. } = &setting;
    let (directory, spillway) = (directory.clone(), spillway.clone());
    drop(setting);
    assert_eq!(threads(), 0);
    assert_eq!(spillway.write(&[b"late"]), Err(SpillError::Closed));
    assert!(!directory.join("oxiray-spill-clerk").exists());
}

fn outside_of_the_arena_is_refused(setting: &Setting, place: Place) {
    for (offset, len) in [(ARENA as u64, 1), (0, ARENA as u64 + 1), (u64::MAX, 2)] {
        setting.clerk.submit(Job::Write { batch: vec![(1, 0, 8), (2, offset, len)] });
        match setting.done() {
            Done::NotWritten { keys, error } => {
                assert_eq!(keys, [1, 2]);
                assert!(error.to_string().contains("outside of the arena"), "{error}");
            }
            other => panic!("not refused: {other:?}"),
        }
    }
    let refused = setting.restore(3, place, ARENA as u64 - 1);
    assert!(matches!(refused, Done::NotRead { key: 3, .. }));
}

/// A place that no spillway has given out, and that overflows when it is added up.
fn a_made_up_place_is_lost(setting: &Setting) {
    let place = Place { file: u64::MAX, offset: u64::MAX, len: 1, checksum: 0 };
    let lost = setting.restore(5, place, 0);
    assert!(matches!(lost, Done::NotRead { key: 5, error: SpillError::Lost { .. } }));
    setting.clerk.submit(Job::Delete { place });
}
