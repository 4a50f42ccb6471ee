//! Disks that are full, for real.
//!
//! Each test runs itself again in a child process where the disk is small: in a mount namespace of
//! its own with a small file system, or with a limit on the length of a file. Nothing is left on
//! the machine, and no privileges are needed where users may make namespaces; elsewhere the test
//! says so and passes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use oxiray_spill::{SpillError, Spillway, Target};

const INSIDE: &str = "SPILL_TEST_INSIDE";
const MEGABYTE: usize = 1 << 20;

/// Whether this is the child. Otherwise runs `test` in one, started by the shell `script`.
fn is_inside(test: &str, script: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let scratch = std::env::temp_dir().join(format!("full-disk-{}-{test}", std::process::id()));
    fs::create_dir(&scratch).expect("a fresh directory");
    let this = std::env::current_exe().expect("this test");
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(&this)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, &scratch)
        .output()
        .expect("a shell");
    let _ = fs::remove_dir_all(&scratch);
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    // What the script says when the machine does not let it do its part.
    if output.status.code() == Some(77) {
        eprintln!("{test} skipped: {told}");
    } else {
        assert!(output.status.success(), "{told}");
    }
    false
}

fn scratch() -> PathBuf {
    PathBuf::from(std::env::var_os(INSIDE).expect("the child has a directory"))
}

fn files(directory: &Path) -> usize {
    let names = fs::read_dir(directory.join("oxiray-spill-full")).expect("ours").flatten();
    names.filter(|entry| entry.file_name() != "lock").count()
}

/// Makes `small`, a small file system, and `large`, a plain directory. The arguments are the test.
const SMALL_DISK: &str = r#"
    apart="unshare --mount"
    $apart true 2>/dev/null || apart="unshare --user --map-root-user --mount"
    $apart true 2>/dev/null || { echo "mount namespaces cannot be made here"; exit 77; }
    exec $apart sh -c '
        mkdir "$SPILL_TEST_INSIDE/small" "$SPILL_TEST_INSIDE/large" &&
        mount -t tmpfs -o size=4m small "$SPILL_TEST_INSIDE/small" ||
            { echo "a file system cannot be mounted here"; exit 77; }
        exec "$@"' sh "$@"
"#;

#[test]
fn a_full_disk_is_told_and_works_again_once_there_is_room() {
    if !is_inside("a_full_disk_is_told_and_works_again_once_there_is_room", SMALL_DISK) {
        return;
    }
    let small = scratch().join("small");
    let target = Target::Directories(vec![small.clone()]);
    let spillway = Spillway::open(&target, "full").expect("a directory");
    let object = vec![1; MEGABYTE];
    let mut places = Vec::new();
    let error = loop {
        match spillway.write(&[&object]) {
            Ok(place) => places.extend(place),
            Err(error) => break error,
        }
    };
    assert_eq!(places.len(), 3, "the fourth does not fit with its seal");
    assert!(matches!(error, SpillError::OutOfDisk { .. }), "{error}");
    assert!(error.to_string().contains(&small.display().to_string()), "{error}");
    assert_eq!(files(&small), 3, "nothing of it is left");

    let mut read = vec![0; MEGABYTE];
    spillway.read(&places[2], &mut read).expect("what is there can be read");
    assert_eq!(read, object);
    spillway.delete(&places[0]);
    spillway.write(&[&object]).expect("there is room again");
}

#[test]
fn a_disk_without_room_for_another_file_is_full() {
    // No inode is left, which the free space does not show.
    let script = SMALL_DISK.replace("size=4m", "size=4m,nr_inodes=5");
    if !is_inside("a_disk_without_room_for_another_file_is_full", &script) {
        return;
    }
    let small = scratch().join("small");
    let target = Target::Directories(vec![small.clone()]);
    let spillway = Spillway::open(&target, "full").expect("a directory");
    let error = loop {
        if let Err(error) = spillway.write(&[b"object"]) {
            break error;
        }
    };
    assert!(matches!(error, SpillError::OutOfDisk { .. }), "{error}");
    assert_eq!(files(&small) as u64, spillway.usage().files);
}

#[test]
fn a_full_disk_is_skipped_while_another_has_room() {
    if !is_inside("a_full_disk_is_skipped_while_another_has_room", SMALL_DISK) {
        return;
    }
    let (small, large) = (scratch().join("small"), scratch().join("large"));
    let target = Target::Directories(vec![small.clone(), large.clone()]);
    let spillway = Spillway::open(&target, "full").expect("directories");
    let object = vec![1; MEGABYTE];
    for _ in 0..10 {
        spillway.write(&[&object]).expect("one of them has room");
    }
    assert_eq!(files(&small), 3);
    assert_eq!(files(&large), 7);
}

#[test]
fn a_file_that_cannot_be_written_to_its_end_is_removed() {
    // 512-byte blocks; the signal that comes with the limit is ignored, as our threads do.
    let script = r#"trap "" XFSZ; ulimit -f 4096 || exit 77; exec "$@""#;
    if !is_inside("a_file_that_cannot_be_written_to_its_end_is_removed", script) {
        return;
    }
    let target = Target::Directories(vec![scratch()]);
    let spillway = Spillway::open(&target, "full").expect("a directory");
    let object = vec![1; MEGABYTE];
    spillway.write(&[&object]).expect("short enough");
    let error = spillway.write(&[&object, &object, &object]).expect_err("too long");
    assert!(matches!(error, SpillError::NotWritten { .. }), "{error}");
    assert!(error.to_string().contains("File too large"), "{error}");
    assert_eq!(files(&scratch()), 1, "S-2");
    assert_eq!(spillway.usage().objects, 1);
}
