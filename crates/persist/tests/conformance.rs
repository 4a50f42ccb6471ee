//! What every place does (S-1 to S-4), and what is special with each.

mod redis_server;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use oxiray_control::{Change, Record, Table};
use oxiray_persist::{Head, Memory, Persist, PersistError, Standby, open};

use redis_server::RedisServer;

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("oxiray-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn url(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn sorted(place: &mut dyn Persist) -> Vec<Record> {
    let mut records = place.load().expect("loads");
    records.sort();
    records
}

fn record(table: Table, key: &[u8], value: &[u8]) -> Record {
    Record { table, key: key.to_vec(), value: value.to_vec() }
}

/// What all of them do. `reopen` gives a new one of the same place.
fn conforms(mut place: Box<dyn Persist>, reopen: impl Fn() -> Option<Box<dyn Persist>>) {
    assert!(sorted(&mut *place).is_empty());
    let awkward: Vec<u8> = (0..=255).collect();
    let kept = [
        record(Table::Meta, b"cluster", &[1; 16]),
        record(Table::Node, &[0, 0, 0, 1], b""),
        record(Table::Kv, &awkward, &awkward),
        record(Table::Kv, b"", b"of the empty key"),
        record(Table::Kv, b"large", &vec![7; 10 << 20]),
    ];
    let puts: Vec<Change> = kept.iter().cloned().map(Change::Put).collect();
    place.write(&puts).expect("writes");
    place.write(&[]).expect("writes nothing");
    place.tend().expect("tends");
    // The same key in two tables, and twice in one batch: the last counts.
    let changes = [
        Change::put(Table::Actor, *b"k", *b"1"),
        Change::put(Table::Dead, *b"k", *b"2"),
        Change::put(Table::Actor, *b"k", *b"3"),
        Change::delete(Table::Dead, *b"k"),
        Change::delete(Table::Kv, *b"large"),
        Change::delete(Table::Job, *b"never there"),
    ];
    for _ in 0..2 {
        place.write(&changes).expect("S-3: again is once");
    }
    let mut should = kept[..4].to_vec();
    should.push(record(Table::Actor, b"k", b"3"));
    should.sort();
    assert_eq!(sorted(&mut *place), should);
    drop(place);
    if let Some(mut again) = reopen() {
        assert_eq!(sorted(&mut *again), should, "S-2");
    }
}

#[test]
fn memory_conforms() {
    conforms(Box::new(Memory::new()), || None);
    let mut forgetful = open("memory:").expect("opens");
    forgetful.write(&[Change::put(Table::Kv, *b"k", *b"v")]).expect("writes");
    assert!(sorted(&mut *forgetful).is_empty());
}

#[test]
fn a_directory_conforms() {
    let scratch = Scratch::new("conforms");
    let file = || open(&format!("file:{}", scratch.url())).expect("opens");
    conforms(file(), || Some(file()));
    assert_eq!(file().describe(), scratch.url());
}

/// S-4.
#[test]
fn a_directory_has_one_user() {
    let scratch = Scratch::new("locked");
    let first = open(&scratch.url()).expect("opens");
    let error = open(&scratch.url()).err().expect("is in use");
    assert!(matches!(error, PersistError::Locked { .. }), "{error}");
    assert!(error.to_string().contains("in use by another control service"));
    drop(first);
    open(&scratch.url()).expect("is free again");
}

#[test]
fn a_directory_that_cannot_be_is_named() {
    let error = open("/proc/nowhere/oxiray").err().expect("cannot be");
    assert!(error.to_string().starts_with("cannot keep state in /proc/nowhere/oxiray: "));
}

/// S-1, S-2: a child writes batches until it is killed; what it said it had is there, whole.
#[test]
fn a_kill_loses_nothing_and_halves_nothing() {
    let scratch = Scratch::new("killed");
    let mut written = 0u64;
    for _ in 0..5 {
        written = kill_while_writing(&scratch.url(), written);
        let mut place = open(&scratch.url()).expect("opens after a kill");
        written = check_batches(&mut *place, written);
    }
    assert!(written > 100, "{written} were written");
}

/// Runs [`the_writer_that_is_killed`] for a while; how many batches it had said it wrote.
fn kill_while_writing(url: &str, from: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "--nocapture", "the_writer_that_is_killed"])
        .env("OXIRAY_TEST_WRITE_TO", url)
        .env("OXIRAY_TEST_WRITE_FROM", from.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let output = child.stdout.take().expect("is piped");
    let reader = std::thread::spawn(move || {
        use std::io::{BufRead, BufReader};
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let numbers = lines.filter_map(|line| line.strip_prefix("wrote ")?.parse::<u64>().ok());
        numbers.last()
    });
    std::thread::sleep(Duration::from_millis(300));
    child.kill().expect("is killed");
    child.wait().expect("ends");
    reader.join().expect("reads").unwrap_or(from)
}

fn batch(number: u64) -> Vec<Change> {
    let value = vec![number as u8; 500];
    let one = |table| Change::put(table, number.to_be_bytes(), value.clone());
    vec![one(Table::Actor), one(Table::Kv), one(Table::Job)]
}

/// Not a test of its own: see above.
#[test]
fn the_writer_that_is_killed() {
    let Ok(url) = std::env::var("OXIRAY_TEST_WRITE_TO") else { return };
    let from = std::env::var("OXIRAY_TEST_WRITE_FROM").expect("is set");
    let mut place = open(&url).expect("opens");
    for number in from.parse::<u64>().expect("a number").. {
        place.write(&batch(number)).expect("writes");
        println!("wrote {}", number + 1);
    }
}

/// That the first `least` batches are there, and whole ones only; how many there are.
fn check_batches(place: &mut dyn Persist, least: u64) -> u64 {
    let count = |records: &[Record], table| {
        let keys = records.iter().filter(|record| record.table == table);
        let mut keys: Vec<&[u8]> = keys.map(|record| &record.key[..]).collect();
        keys.sort_unstable();
        let should: Vec<[u8; 8]> = (0..keys.len() as u64).map(u64::to_be_bytes).collect();
        assert!(keys.iter().zip(&should).all(|(key, should)| key == should), "S-1: a gap");
        keys.len() as u64
    };
    let records = place.load().expect("loads");
    let [actors, keys, jobs] = [Table::Actor, Table::Kv, Table::Job].map(|t| count(&records, t));
    assert!(actors == keys && keys == jobs, "S-1: {actors} {keys} {jobs}");
    assert!(actors >= least, "S-2: {least} were written, {actors} are there");
    actors
}

/// A file system of a few megabytes, which only root can make.
struct SmallDisk(Scratch);

impl SmallDisk {
    fn new() -> Option<Self> {
        let scratch = Scratch::new("small-disk");
        std::fs::create_dir_all(&scratch.0).expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(&scratch.0).stderr(Stdio::null());
        let mounted = mount.status().is_ok_and(|status| status.success());
        if !mounted {
            eprintln!("SKIPPED: a small file system cannot be mounted here; it takes root");
        }
        mounted.then_some(Self(scratch))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0.0).status();
    }
}

#[test]
fn a_full_disk_is_said_and_when_there_is_space_it_goes_on() {
    let Some(disk) = SmallDisk::new() else { return };
    let ballast = disk.0.0.join("ballast");
    std::fs::write(&ballast, vec![0; 5 << 20]).expect("there is space for that");
    let url = disk.0.0.join("state").display().to_string();
    let mut place = open(&url).expect("opens");
    let mut written = 0;
    let error = loop {
        match place.write(&batch(written)) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, PersistError::DiskFull { .. }) && error.is_retryable(), "{error:?}");
    assert!(error.to_string().contains("is full; make room there"));
    std::fs::remove_file(&ballast).expect("is removed");
    for _ in 0..100 {
        place.write(&batch(written)).expect("there is space again");
        written += 1;
    }
    assert_eq!(check_batches(&mut *place, written), written);
    drop(place);
    check_batches(&mut *open(&url).expect("opens again"), written);
}

#[test]
fn redis_conforms() {
    for password in ["", "a secret:/@"] {
        let Some(server) = RedisServer::start(password) else { return };
        let redis = || open(&server.url()).expect("opens");
        conforms(redis(), || Some(redis()));
        if !password.is_empty() {
            assert!(!redis().describe().contains("secret"));
        }
    }
}

#[test]
fn redis_keeps_clusters_apart() {
    let Some(server) = RedisServer::start("") else { return };
    let mut one = open(&format!("{}/?cluster=one", server.url())).expect("opens");
    one.write(&[Change::put(Table::Kv, *b"k", *b"v")]).expect("writes");
    let mut two = open(&format!("{}/?cluster=two", server.url())).expect("opens");
    assert!(sorted(&mut *two).is_empty());
}

#[test]
fn without_redis_it_is_said_where_it_was_sought() {
    let port = redis_server::free_port();
    let error = open(&format!("redis://:secret@127.0.0.1:{port}")).err().expect("nobody is there");
    assert!(error.is_retryable());
    let text = error.to_string();
    assert!(text.starts_with(&format!("cannot reach Redis at 127.0.0.1:{port}: ")), "{text}");
    assert!(text.contains("Does it run there") && !text.contains("secret"), "{text}");
}

#[test]
fn a_wrong_password_is_said_without_it() {
    let Some(server) = RedisServer::start("right") else { return };
    for url in [format!("redis://:wrong1@{}", server.at()), format!("redis://{}", server.at())] {
        let error = open(&url).err().expect("is refused");
        assert!(matches!(error, PersistError::Password { .. }), "{error:?}");
        assert!(!error.to_string().contains("wrong1") && !error.is_retryable());
    }
}

/// S-4: another process holds the lease, and renews it.
#[test]
fn redis_has_one_user() {
    let Some(server) = RedisServer::start("") else { return };
    let mut lease = server.connect();
    let holder = "otherhost boot/pid 77 1234";
    let renew = move |connection: &mut redis::Connection| {
        let mut set = redis::cmd("SET");
        set.arg("oxiray:{default}:lease").arg(holder).arg("PX").arg(6000);
        let () = set.query(connection).expect("is set");
    };
    renew(&mut lease);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let renewer = std::thread::spawn(move || {
        while stopped.recv_timeout(Duration::from_secs(1)).is_err() {
            renew(&mut lease);
        }
    });
    let begun = Instant::now();
    let error = open(&server.url()).err().expect("is in use");
    let _ = stop.send(());
    renewer.join().expect("ends");
    assert!(error.to_string().contains("in use by the control service on otherhost (process 77)"));
    assert!(begun.elapsed() < Duration::from_secs(4), "it is seen that it is renewed");
}

/// A head that was killed must not keep its successor out.
#[test]
fn the_lease_of_a_process_that_is_gone_is_taken_over() {
    let Some(server) = RedisServer::start("") else { return };
    let written = kill_while_writing(&server.url(), 0);
    let begun = Instant::now();
    let mut place = open(&server.url()).expect("takes over");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    check_batches(&mut *place, written);
}

/// S-4: one that was away for too long does not disturb its successor.
#[test]
fn who_lost_the_lease_writes_no_more() {
    let Some(server) = RedisServer::start("") else { return };
    let mut place = open(&server.url()).expect("opens");
    place.write(&[Change::put(Table::Kv, *b"k", *b"1")]).expect("writes");
    let mut other = server.connect();
    let holder = "otherhost boot/pid 77 1234";
    let () = redis::cmd("SET")
        .arg("oxiray:{default}:lease")
        .arg(holder)
        .query(&mut other)
        .expect("is set");
    let error = place.write(&[Change::put(Table::Kv, *b"k", *b"2")]).expect_err("is not ours");
    assert!(matches!(error, PersistError::Taken { .. }), "{error:?}");
    let value: String =
        redis::cmd("HGET").arg("oxiray:{default}:kv").arg("k").query(&mut other).expect("is there");
    assert_eq!(value, "1");
}

/// S-4: nor what a successor left behind that has ended since.
#[test]
fn who_lost_the_lease_to_one_that_has_ended_does_not_take_it_again() {
    let Some(server) = RedisServer::start("") else { return };
    let write = |place: &mut dyn Persist, value: &[u8]| {
        place.write(&[Change::put(Table::Kv, *b"k", value.to_vec())])
    };
    let mut place = open(&server.url()).expect("opens");
    write(&mut *place, b"1").expect("writes");
    let mut other = server.connect();
    let mut expire = || -> () {
        redis::cmd("DEL").arg("oxiray:{default}:lease").query(&mut other).expect("expires")
    };
    expire();
    write(&mut *place, b"2").expect("nobody else had it");
    expire();
    write(&mut *open(&server.url()).expect("opens"), b"3").expect("succeeds the first");
    let error = write(&mut *place, b"4").expect_err("was succeeded");
    assert!(matches!(error, PersistError::Succeeded { .. }), "{error:?}");
    let mut next = open(&server.url()).expect("the lease was given back");
    assert_eq!(sorted(&mut *next), [record(Table::Kv, b"k", b"3")]);
}

/// Another machine's lease, for so long.
fn lease_elsewhere(connection: &mut redis::Connection, ms: u64) {
    let mut set = redis::cmd("SET");
    set.arg("oxiray:{default}:lease").arg("otherhost boot/pid 77 1234").arg("PX").arg(ms);
    let () = set.query(connection).expect("is set");
}

/// S-4: a standby waits as long as the lease lasts; what it takes over nobody else can write any more.
#[test]
fn a_standby_takes_over_when_the_lease_has_run_out() {
    let Some(server) = RedisServer::start("") else { return };
    let mut first = open(&server.url()).expect("opens");
    let cluster = Change::put(Table::Meta, *b"cluster", [1; 16]);
    first.write(std::slice::from_ref(&cluster)).expect("writes");
    let mut other = server.connect();
    lease_elsewhere(&mut other, 600);
    let mut standby = Standby::new(&server.url()).expect("a URL");
    assert!(!standby.attempt().expect("looks"), "it is another's");
    assert!(standby.is_held_for(Duration::ZERO).expect("looks"));
    assert!(!standby.is_held_for(Duration::from_secs(10)).expect("looks"), "it has run out");
    assert!(standby.attempt().expect("takes over"));
    let mut second = standby.into_store();
    assert_eq!(sorted(&mut *second), [record(Table::Meta, b"cluster", &[1; 16])]);
    second.write(&[Change::put(Table::Kv, *b"k", *b"2")]).expect("writes");
    let error = first.write(&[Change::put(Table::Kv, *b"k", *b"1")]).expect_err("was succeeded");
    assert!(matches!(error, PersistError::Succeeded { .. }), "{error:?}");
}

#[test]
fn who_reigns_and_who_waits_is_known_to_all() {
    let Some(server) = RedisServer::start("") else { return };
    let mut standby = Standby::new(&server.url()).expect("a URL");
    let error = standby.reigning().expect_err("there is no cluster");
    assert!(matches!(error, PersistError::NothingKept { .. }), "{error:?}");
    assert!(!standby.attempt().expect("looks"), "nothing is not taken over");
    let mut place = open(&server.url()).expect("opens");
    place.write(&[Change::put(Table::Meta, *b"cluster", [1; 16])]).expect("writes");
    let head = Head { address: "10.0.0.1:1".into(), version: 7 };
    assert_eq!(place.announce(&head).expect("says so"), ["10.0.0.1:1"]);
    assert_eq!(standby.reigning().expect("is there"), Some(head.clone()));
    let both = ["10.0.0.1:1", "10.0.0.2:1"];
    assert_eq!(standby.announce("10.0.0.2:1").expect("says so"), both);
    assert_eq!(place.announce(&head).expect("says so"), both);
    // Who leaves says so.
    drop(standby);
    assert_eq!(place.announce(&head).expect("says so"), ["10.0.0.1:1"]);
}

#[test]
fn only_what_others_reach_can_be_waited_for() {
    for url in ["memory:", "/var/lib/oxiray", "file:/var/lib/oxiray"] {
        let error = Standby::new(url).err().expect("is of one machine");
        assert!(error.to_string().contains("`redis://HOST:PORT`"), "{error}");
    }
}

#[test]
fn redis_may_come_and_go() {
    let Some(mut server) = RedisServer::start("") else { return };
    let mut place = open(&server.url()).expect("opens");
    let cluster = Change::put(Table::Meta, *b"cluster", [1; 16]);
    let other = Change::put(Table::Kv, *b"k", *b"v");
    place.write(std::slice::from_ref(&cluster)).expect("writes");
    server.stop();
    let error = place.write(std::slice::from_ref(&other)).expect_err("is away");
    assert!(matches!(error, PersistError::Unreachable { .. }) && error.is_retryable(), "{error:?}");
    // It kept nothing of its own: everything must be written anew.
    server.start_again();
    let error = place.write(std::slice::from_ref(&other)).expect_err("was emptied");
    assert!(matches!(error, PersistError::Emptied { .. }), "{error:?}");
    place.write(&[cluster, other]).expect("writes everything");
    place.tend().expect("goes on");
    assert_eq!(place.load().expect("loads").len(), 2);
}

/// One that hangs is noticed after two seconds.
#[test]
fn redis_may_hang() {
    let Some(server) = RedisServer::start("") else { return };
    let mut place = open(&server.url()).expect("opens");
    server.signal("STOP");
    let begun = Instant::now();
    let error = place.write(&[Change::put(Table::Kv, *b"k", *b"v")]).expect_err("hangs");
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert!(error.to_string().contains("it does not answer"), "{error}");
    server.signal("CONT");
    place.write(&[Change::put(Table::Kv, *b"k", *b"v")]).expect("goes on");
}
