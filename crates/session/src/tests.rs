//! The folder as our own user sees it. What another user of the machine puts in the way is tried
//! with a real one, in `tests/security/test_neighbour.py`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::*;
use crate::place::Place;

/// A directory for one test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("oxiray-session-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("can be made");
        fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("ours");
        Self(path)
    }

    fn folder(&self) -> Folder {
        Folder::of_user(&self.0).expect("ours")
    }

    fn names(&self) -> Vec<String> {
        Directory::at(&self.0).expect("ours").names()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("there").mode() & 0o777
}

/// Makes a session that ended with so many bytes of logs.
fn ended(folder: &Folder, name: &str, bytes: usize) {
    let session = folder.make_session(name).expect("made");
    fs::write(session.logs().join("a.out"), vec![b'x'; bytes]).expect("written");
    fs::write(session.path().join("dashboard.token"), "secret").expect("written");
    drop(session.listen().expect("a socket"));
}

#[test]
fn a_folder_that_others_may_enter_is_made_private_only_if_it_is_empty() {
    let scratch = Scratch::new("place");
    // Exercises F-1.
    let place = |name: &str| Place::named(scratch.0.join(name));
    assert!(place("none").open().expect("no error").is_none());
    place("new/deep").open_or_make().expect("made");
    assert_eq!(mode(&scratch.0.join("new/deep")), 0o700);
    fs::create_dir(scratch.0.join("open")).expect("made");
    fs::set_permissions(scratch.0.join("open"), Permissions::from_mode(0o755)).expect("ours");
    place("open").open_or_make().expect("ours and empty");
    assert_eq!(mode(&scratch.0.join("open")), 0o700);
    fs::write(scratch.0.join("open/file"), "").expect("written");
    fs::set_permissions(scratch.0.join("open"), Permissions::from_mode(0o755)).expect("ours");
    let refusal = place("open").open().expect_err("it has another purpose").to_string();
    assert!(refusal.contains("chmod 700"), "{refusal}");
    assert_eq!(mode(&scratch.0.join("open")), 0o755, "it is left as it is");
    symlink(scratch.0.join("new"), scratch.0.join("link")).expect("a link");
    place("link").open().expect("the user's own link").expect("is there");
    let refusal = Place::our_own(scratch.0.join("link")).open().expect_err("F-2").to_string();
    assert!(refusal.contains("is a link"), "{refusal}");
}

#[test]
fn what_programs_left_is_in_nobodys_way_who_begins_again() {
    let scratch = Scratch::new("again");
    let made = scratch.folder().make_session("session_1").expect("made");
    let path = made.path().to_str().expect("a path");
    fs::write(made.path().join("late"), "").expect("written");
    let refusal = Session::take(path).map(|_| ()).expect_err("is refused").to_string();
    assert!(refusal.contains("is not empty"), "{refusal}");
    let again = Session::take_again(path).expect("ours");
    assert!(!again.path().join("late").exists());
}

#[test]
fn a_session_lives_while_somebody_holds_it() {
    let scratch = Scratch::new("hold");
    let folder = scratch.folder();
    // Exercises F-5, H-1.
    let made = folder.make_session("session_1").expect("made");
    let taken = Session::take(made.path().to_str().expect("a path")).expect("ours");
    let listener = taken.listen().expect("a socket");
    assert!(folder.running().len() == 1 && folder.ended().is_empty());
    drop(listener);
    drop(made);
    folder.keep(0, 0);
    folder.sweep();
    assert!(!folder.end_left("session_1"), "nobody listens, and yet it lives");
    assert!(taken.path().join("node.sock").exists());
    drop(taken);
    folder.keep(0, 0);
    assert!(scratch.names().is_empty());
    assert!(folder.end_left("session_1"), "it is gone");
}

#[test]
fn who_makes_a_session_begins_again_when_it_was_taken_for_one_that_was_left() {
    let scratch = Scratch::new("race");
    let folder = scratch.folder();
    // Exercises H-2: made, and not yet held.
    let directory = folder.directory().make("session_1").expect("made");
    let remover = Hold::alone(&directory).expect("a lock").expect("nobody else's");
    assert!(Hold::shared(&directory).expect("no error").is_none());
    folder.remove("session_1");
    drop(remover);
    assert!(Hold::shared(&directory).is_err(), "there is nothing to hold");
    folder.make_session("session_1").expect("made again");
}

#[test]
fn the_last_sessions_are_kept_without_what_nobody_looks_at() {
    let scratch = Scratch::new("kept");
    let folder = scratch.folder();
    for number in 1..=4 {
        ended(&folder, &format!("session_{number}"), 10);
    }
    folder.keep(3, u64::MAX);
    assert_eq!(scratch.names(), ["session_2", "session_3", "session_4"]);
    let kept = folder.session("session_4").expect("kept");
    let names = Directory::at(kept.path()).expect("ours").names();
    assert_eq!(names, ["lock", "logs"], "neither token nor socket");
    assert_eq!(folder.ended().last().map(Session::name).as_deref(), Some("session_4"));
    let read = kept.hold().expect("no error").expect("is there");
    folder.keep(0, u64::MAX);
    assert_eq!(scratch.names(), ["session_4"], "H-1: somebody reads it");
    drop(read);
    folder.keep(0, u64::MAX);
    assert!(scratch.names().is_empty());
}

#[test]
fn what_is_kept_is_bounded_in_bytes() {
    let scratch = Scratch::new("bytes");
    let folder = scratch.folder();
    for number in 1..=3 {
        ended(&folder, &format!("session_{number}"), 100_000);
    }
    folder.keep(10, 250_000);
    assert_eq!(scratch.names(), ["session_2", "session_3"], "the oldest goes");
    fs::write(scratch.0.join("session_3/logs/b.out"), vec![b'y'; 100_000]).expect("written");
    fs::File::options()
        .write(true)
        .open(scratch.0.join("session_3/logs/a.out"))
        .and_then(|file| file.set_modified(std::time::UNIX_EPOCH))
        .expect("an old file");
    folder.keep(10, 150_000);
    assert_eq!(scratch.names(), ["session_3"]);
    let logs = folder.session("session_3").expect("kept").logs();
    let left: Vec<_> = fs::read_dir(logs).expect("there").filter_map(Result::ok).collect();
    assert_eq!(left.len(), 1, "of one that is too much, the oldest file goes");
    assert_eq!(left[0].file_name(), "b.out");
}

#[test]
fn no_name_leads_out_of_a_directory_and_no_link() {
    let scratch = Scratch::new("names");
    let directory = Directory::at(&scratch.0).expect("ours");
    // Exercises F-2.
    fs::create_dir_all(scratch.0.join("folder/inner")).expect("made");
    fs::write(scratch.0.join("precious"), "text").expect("written");
    symlink(scratch.0.join("folder"), scratch.0.join("link")).expect("a link");
    symlink(scratch.0.join("precious"), scratch.0.join("folder/link")).expect("a link");
    for name in ["", ".", "..", "folder/inner", "/etc", "a\0b"] {
        assert!(directory.open(name).is_err(), "{name:?}");
        assert!(directory.make(name).is_err() && directory.read(name).is_err(), "{name:?}");
        assert!(!directory.remove(name), "{name:?}");
    }
    assert!(directory.open("link").is_err() && directory.open_or_make("link").is_err());
    assert!(directory.write("link", b"new").is_ok(), "the link itself is replaced");
    assert!(scratch.0.join("folder/inner").is_dir());
    fs::set_permissions(scratch.0.join("folder"), Permissions::from_mode(0o755)).expect("ours");
    assert!(directory.open("folder").is_err(), "others may enter it");
    assert!(directory.remove("folder"));
    assert_eq!(fs::read_to_string(scratch.0.join("precious")).expect("there"), "text");
}

#[test]
fn a_file_of_a_started_node_says_where_to_look_and_no_more() {
    let scratch = Scratch::new("started");
    let folder = scratch.folder();
    let precious = scratch.0.join("precious");
    fs::create_dir(&precious).expect("made");
    fs::set_permissions(&precious, Permissions::from_mode(0o700)).expect("ours");
    let started = |session_dir: PathBuf| Started {
        address: "1.2.3.4:6379".into(),
        session_dir,
        is_head: true,
        node_pid: format!("{} 1", std::process::id()),
        cluster: "../precious".into(),
        ..Started::default()
    };
    // Exercises F-4: another directory, by a file of its own name and of another one's.
    folder.save(&started(precious.clone())).expect("saved");
    let text = started(precious.clone()).text();
    fs::write(scratch.0.join("started/session_9"), text).expect("written");
    assert_eq!(folder.started(), []);
    assert!(precious.is_dir());

    let session = folder.make_session("session_1").expect("made");
    let listener = session.listen().expect("a socket");
    let node = started(session.path().to_owned());
    folder.save(&node).expect("saved");
    assert_eq!(mode(&scratch.0.join("started/session_1")), 0o600);
    assert_eq!(folder.started(), std::slice::from_ref(&node), "all fields are read again");
    assert_eq!(folder.clusters(Some("1.2.3.4:6379")).len(), 1);
    assert_eq!(folder.clusters(Some("1.2.3.4:1")), []);
    drop(listener);
    assert_eq!(folder.started(), []);
    assert!(session.path().exists(), "F-5: somebody, somewhere, lives in it");
    drop(session);
    folder.save(&node).expect("saved");
    assert_eq!(folder.started(), []);
    assert!(!scratch.0.join("started/session_1").exists());
    assert!(!scratch.0.join("session_1/node.sock").exists());
}
