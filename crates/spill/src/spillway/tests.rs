//! The promises of a spillway, kept by every backing; and what may befall files on a disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use super::*;

/// A fresh directory, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("spillway-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a fresh directory");
        Self(path)
    }

    fn directories(&self, count: usize) -> Target {
        Target::Directories((0..count).map(|index| self.0.join(index.to_string())).collect())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// All spill files below `path`.
fn spill_files(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).expect("a directory").flatten() {
        if entry.path().is_dir() {
            found.extend(spill_files(&entry.path()));
        } else if entry.file_name() != "lock" {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

fn read(spillway: &Spillway, place: &Place) -> Result<Vec<u8>, SpillError> {
    let mut bytes = vec![0xee; place.len as usize];
    spillway.read(place, &mut bytes).map(|()| bytes)
}

#[track_caller]
fn assert_lost(spillway: &Spillway, place: &Place, part: &str) {
    match read(spillway, place) {
        Err(error @ SpillError::Lost { .. }) => {
            assert!(error.to_string().contains(part), "{error}");
        }
        other => panic!("not lost: {other:?}"),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write { lens: Vec<usize> },
    Read { pick: usize },
    Delete { pick: usize },
    DeleteAgain { pick: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop::collection::vec(prop_oneof![0..5000usize, Just(300_000)], 0..6)
            .prop_map(|lens| Step::Write { lens }),
        3 => any::<usize>().prop_map(|pick| Step::Read { pick }),
        3 => any::<usize>().prop_map(|pick| Step::Delete { pick }),
        1 => any::<usize>().prop_map(|pick| Step::DeleteAgain { pick }),
    ]
}

/// Runs `steps` against a plain list of what is spilled.
fn agrees_with_a_list(target: &Target, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let spillway = Spillway::open(target, "model").expect("a target");
    let mut alive: Vec<(Place, Vec<u8>)> = Vec::new();
    let mut deleted: Vec<Place> = Vec::new();
    let mut seed = 0u8;
    for step in steps {
        match step {
            Step::Write { lens } => {
                let objects: Vec<Vec<u8>> = lens
                    .iter()
                    .map(|&len| {
                        seed = seed.wrapping_add(1);
                        (0..len).map(|index| (index as u8).wrapping_mul(31) ^ seed).collect()
                    })
                    .collect();
                let slices: Vec<&[u8]> = objects.iter().map(Vec::as_slice).collect();
                let places = spillway.write(&slices).expect("there is room");
                prop_assert_eq!(places.len(), objects.len());
                alive.extend(places.into_iter().zip(objects));
            }
            Step::Read { pick } if !alive.is_empty() => {
                let (place, bytes) = &alive[pick % alive.len()];
                let found = read(&spillway, place);
                prop_assert_eq!(found.as_ref(), Ok(bytes));
            }
            Step::Delete { pick } if !alive.is_empty() => {
                let (place, _) = alive.swap_remove(pick % alive.len());
                spillway.delete(&place);
                deleted.push(place);
            }
            Step::DeleteAgain { pick } if !deleted.is_empty() => {
                let place = deleted[pick % deleted.len()];
                spillway.delete(&place);
                let lost = matches!(read(&spillway, &place), Err(SpillError::Lost { .. }));
                prop_assert!(lost);
            }
            _ => {}
        }
        spillway.ledger.lock().validate();
        let usage = spillway.usage();
        prop_assert_eq!(usage.objects, alive.len() as u64);
        prop_assert_eq!(usage.bytes, alive.iter().map(|(place, _)| place.len).sum::<u64>());
        if let Target::Directories(directories) = target {
            let files = directories.iter().flat_map(|directory| spill_files(directory));
            prop_assert_eq!(usage.files, files.count() as u64, "L-1: files on disk");
        }
    }
    for (place, bytes) in &alive {
        let found = read(&spillway, place);
        prop_assert_eq!(found.as_ref(), Ok(bytes), "S-1");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Exercises S-1, S-2 and L-1 to L-3.
    #[test]
    fn directories_agree_with_a_list(
        count in 1..4usize,
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let scratch = Scratch::new();
        agrees_with_a_list(&scratch.directories(count), steps)?;
        for index in 0..count {
            let left = fs::read_dir(scratch.0.join(index.to_string())).expect("still there");
            prop_assert_eq!(left.count(), 0, "dropping it removes all");
        }
    }

    /// The same for object stores.
    #[cfg(feature = "url")]
    #[test]
    fn a_bucket_agrees_with_a_list(steps in prop::collection::vec(step(), 0..40)) {
        agrees_with_a_list(&Target::Url("memory:///some/prefix".to_owned()), steps)?;
    }

    /// Exercises and S-1: whatever happens to a file, no wrong bytes are read.
    #[test]
    fn damage_is_noticed(
        lens in prop::collection::vec(0..2000usize, 1..5),
        at in any::<prop::sample::Index>(),
        flip in 1..=255u8,
        truncate in any::<bool>(),
    ) {
        let scratch = Scratch::new();
        let spillway = Spillway::open(&scratch.directories(1), "damage").expect("a directory");
        let objects: Vec<Vec<u8>> =
            lens.iter().enumerate().map(|(index, &len)| vec![index as u8; len]).collect();
        let slices: Vec<&[u8]> = objects.iter().map(Vec::as_slice).collect();
        let places = spillway.write(&slices).expect("there is room");
        let path = &spill_files(&scratch.0)[0];
        let mut file = fs::read(path).expect("the file");
        let at = at.index(file.len());
        if truncate {
            file.truncate(at);
        } else {
            file[at] ^= flip;
        }
        fs::write(path, &file).expect("written");
        for (place, bytes) in places.iter().zip(&objects) {
            let start = place.offset as usize;
            let end = start + bytes.len() + 32;
            let hit = if truncate { at < end } else { (start..end).contains(&at) };
            match read(&spillway, place) {
                Ok(found) => {
                    prop_assert!(!hit, "S-1: damage at {at} was not noticed");
                    prop_assert_eq!(&found, bytes);
                }
                Err(SpillError::Lost { .. }) => prop_assert!(hit, "the others stay readable"),
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}

#[test]
fn a_file_removed_emptied_or_swapped_is_lost() {
    let scratch = Scratch::new();
    let spillway = Spillway::open(&scratch.directories(2), "swap").expect("directories");
    let same = [7u8; 1000];
    let places: Vec<Place> =
        (0..4).map(|_| spillway.write(&[&same]).expect("there is room")[0]).collect();
    let mut files = spill_files(&scratch.0);
    files.sort_by_key(|path| path.file_name().map(ToOwned::to_owned));
    assert_eq!(files[0].parent().and_then(Path::parent), Some(&*scratch.0.join("0")));
    assert_eq!(files[1].parent().and_then(Path::parent), Some(&*scratch.0.join("1")), "in turn");

    let aside = scratch.0.join("aside");
    fs::rename(&files[0], &aside).expect("moved");
    fs::rename(&files[1], &files[0]).expect("moved");
    fs::rename(&aside, &files[1]).expect("moved");
    // the bytes are the same, and yet it is noticed.
    assert_lost(&spillway, &places[0], "replaced by another file");
    assert_lost(&spillway, &places[1], "replaced by another file");
    fs::remove_file(&files[2]).expect("removed");
    assert_lost(&spillway, &places[2], "was removed");
    fs::write(&files[3], b"").expect("emptied");
    assert_lost(&spillway, &places[3], "truncated");
    for place in &places {
        spillway.delete(place);
    }
    assert_eq!(spillway.usage(), Usage::default(), "what is lost can still be deleted");
}

#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let spillway = Spillway::open(&scratch.directories(1), "private").expect("a directory");
    spillway.write(&[b"secret"]).expect("there is room");
    let file = &spill_files(&scratch.0)[0];
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(file), 0o600);
    assert_eq!(mode(file.parent().expect("its directory")), 0o700);
}

#[test]
fn what_cannot_be_spilled_to_is_told_at_once() {
    let scratch = Scratch::new();
    let file = scratch.0.join("file");
    fs::write(&file, b"").expect("written");
    for (directory, part) in [
        (scratch.0.join("missing/deeper"), "neither it nor the directory it is in exists"),
        (file.clone(), "it is a file"),
        (file.join("below"), "Not a directory"),
        // A file system that is read-only for everybody, root too.
        (PathBuf::from("/proc/self"), "cannot be made in it"),
    ] {
        // The first directory is fine: it must be left as it was.
        let good = scratch.0.join("good");
        let target = Target::Directories(vec![good.clone(), directory.clone()]);
        let error = Spillway::open(&target, "bad").expect_err("not usable").to_string();
        assert!(error.contains(part), "{error}");
        assert!(error.contains(&directory.display().to_string()), "{error}");
        assert_eq!(fs::read_dir(&good).expect("made").count(), 0);
    }
    let error = Spillway::open(&scratch.directories(1), "a/b").expect_err("a bad name");
    assert!(error.to_string().contains("session's name"), "{error}");
}

#[test]
fn a_directory_that_fails_is_skipped_while_another_works() {
    let scratch = Scratch::new();
    let spillway = Spillway::open(&scratch.directories(2), "skip").expect("directories");
    let gone = scratch.0.join("0/oxiray-spill-skip");
    fs::rename(&gone, scratch.0.join("aside")).expect("moved");
    for _ in 0..4 {
        spillway.write(&[b"object"]).expect("the other one works");
    }
    assert_eq!(spill_files(&scratch.0.join("1")).len(), 4);
    fs::rename(scratch.0.join("aside"), &gone).expect("moved back");
    fs::rename(scratch.0.join("1/oxiray-spill-skip"), scratch.0.join("aside")).expect("moved");
    let place = spillway.write(&[b"object"]).expect("the first one is tried again")[0];
    assert_eq!(read(&spillway, &place).as_deref(), Ok(&b"object"[..]));
    fs::remove_dir_all(&gone).expect("removed");
    match spillway.write(&[b"object"]) {
        Err(error @ SpillError::NotWritten { .. }) => {
            let told = error.to_string();
            assert!(told.contains(&scratch.0.join("0").display().to_string()), "{told}");
            assert!(told.contains(&scratch.0.join("1").display().to_string()), "{told}");
        }
        other => panic!("both are gone: {other:?}"),
    }
}

#[test]
fn what_a_crashed_session_left_is_removed_and_what_a_live_one_has_is_not() {
    let scratch = Scratch::new();
    let target = scratch.directories(1);
    let live = Spillway::open(&target, "live").expect("a directory");
    let place = live.write(&[b"object"]).expect("there is room")[0];
    // Exercises D-1 to D-4: one crashed, one crashed in the making, one elsewhere, one not ours.
    let directory = scratch.0.join("0");
    let sub = |name: &str| directory.join(format!("oxiray-spill-{name}"));
    for name in ["crashed", "making", "elsewhere"] {
        fs::create_dir(sub(name)).expect("made");
    }
    let maker = fs::read(sub("live").join("lock")).expect("its lock");
    fs::write(sub("crashed").join("lock"), maker).expect("written");
    fs::write(sub("crashed").join("00000001"), b"left").expect("written");
    fs::write(sub("elsewhere").join("lock"), b"boot\nname\n").expect("written");
    fs::create_dir(directory.join("something")).expect("made");
    std::os::unix::fs::symlink(directory.join("something"), sub("link")).expect("linked");

    let other = Spillway::open(&target, "crashed").expect("its name is free again");
    let mut left: Vec<_> = fs::read_dir(&directory)
        .expect("there")
        .flatten()
        .map(|entry| entry.file_name().into_string().expect("plain"))
        .collect();
    left.sort();
    let expected = ["crashed", "elsewhere", "link", "live"].map(|n| format!("oxiray-spill-{n}"));
    assert_eq!(left[..4], expected);
    assert_eq!(left[4..], ["something"]);
    assert!(spill_files(&sub("crashed")).is_empty());
    assert_eq!(read(&live, &place).as_deref(), Ok(&b"object"[..]));
    let error = Spillway::open(&target, "live").expect_err("D-1").to_string();
    assert!(error.contains("another session named live"), "{error}");
    drop(other);
}

#[test]
fn sessions_that_start_at_the_same_time_do_not_harm_each_other() {
    // Exercises D-2 and D-3: all remove what is abandoned while others make theirs.
    let scratch = Scratch::new();
    let target = scratch.directories(1);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let target = &target;
            scope.spawn(move || {
                for round in 0..50 {
                    let name = format!("s-{thread}-{round}");
                    let spillway = Spillway::open(target, &name).expect("a directory");
                    let place = spillway.write(&[b"object"]).expect("there is room")[0];
                    std::thread::yield_now();
                    assert_eq!(read(&spillway, &place).as_deref(), Ok(&b"object"[..]));
                }
            });
        }
    });
    assert_eq!(fs::read_dir(scratch.0.join("0")).expect("there").count(), 0);
}

#[test]
fn after_closing_all_is_refused() {
    let scratch = Scratch::new();
    let spillway = Spillway::open(&scratch.directories(1), "closed").expect("a directory");
    let place = spillway.write(&[b"object"]).expect("there is room")[0];
    spillway.close();
    spillway.close();
    assert_eq!(spillway.write(&[b"object"]), Err(SpillError::Closed));
    assert_eq!(read(&spillway, &place), Err(SpillError::Closed));
    spillway.delete(&place);
    assert_eq!(spillway.usage(), Usage::default());
    assert!(spill_files(&scratch.0).is_empty());
}

#[test]
fn room_of_another_length_is_refused() {
    let scratch = Scratch::new();
    let spillway = Spillway::open(&scratch.directories(1), "length").expect("a directory");
    let place = spillway.write(&[b"object"]).expect("there is room")[0];
    let error = spillway.read(&place, &mut [0; 5]).expect_err("too short");
    assert!(matches!(error, SpillError::NotRead { .. }));
}
