//! Keys and values, programs, the dead, and records that are not whole.

use oxiray_wire::cluster::{Job, Join, Kv, KvVerb, NodeInfo, from_control, to_control};
use oxiray_wire::control::{ActorPhase, CreateActor};
use prost::Message;

use super::bench::{Bench, actor, creation, join, process};
use crate::jobs::UNSEEN_END;
use crate::record::{ActorRecord, DeadRecord, NameRecord};
use crate::{Control, Damaged, Event, MOST_VALUE_BYTES, Now, PeerId, Record, Table};

fn kv(verb: KvVerb, key: &[u8], value: Option<&[u8]>, wide: bool) -> Kv {
    Kv {
        request: 5,
        verb: verb.into(),
        namespace: "n".into(),
        key: key.to_vec(),
        value: value.map(<[u8]>::to_vec),
        wide,
        ..Kv::default()
    }
}

fn ask(bench: &mut Bench, question: Kv) -> Kv {
    let asked = bench.say(50, to_control::Body::Kv(question));
    let [from_control::Body::Kv(answer)] = &asked.to(50)[..] else { panic!() };
    assert_eq!(answer.request, 5);
    answer.clone()
}

#[test]
fn keys_and_values_outlive_a_restart() {
    let mut bench = Bench::new();
    for (key, value) in [(b"a1", b"x"), (b"a2", b"y"), (b"b1", b"z")] {
        assert_eq!(ask(&mut bench, kv(KvVerb::Put, key, Some(value), false)).count, 1);
    }
    assert_eq!(ask(&mut bench, kv(KvVerb::Put, b"a1", Some(b"!"), false)).count, 0);
    assert_eq!(ask(&mut bench, kv(KvVerb::Put, b"a1", Some(b"?"), true)).count, 1);
    bench.restart();
    let value = ask(&mut bench, kv(KvVerb::Get, b"a1", None, false)).value;
    assert_eq!(value.as_deref(), Some(&b"?"[..]));
    assert_eq!(ask(&mut bench, kv(KvVerb::Get, b"nothing", None, false)).value, None);
    assert_eq!(ask(&mut bench, kv(KvVerb::List, b"a", None, false)).keys, [b"a1", b"a2"]);
    let elsewhere = Kv { namespace: "m".into(), ..kv(KvVerb::List, b"", None, false) };
    assert!(ask(&mut bench, elsewhere).keys.is_empty());
    assert_eq!(ask(&mut bench, kv(KvVerb::Delete, b"a", None, false)).count, 0);
    assert_eq!(ask(&mut bench, kv(KvVerb::Delete, b"a", None, true)).count, 2);
    bench.restart();
    assert_eq!(ask(&mut bench, kv(KvVerb::List, b"", None, false)).keys, [b"b1"]);
}

/// Two nodes that write one key, and a control service that is killed after it has written what the
/// first asked for, and before that has the answer.
#[test]
fn k1_what_is_asked_again_changes_nothing_again() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.join(2);
    let asked = |bench: &mut Bench, peer, request, answered, question: Kv| {
        let question = Kv { request, answered, ..question };
        let asked = bench.say(peer, to_control::Body::Kv(question));
        let [from_control::Body::Kv(answer)] = &asked.to(peer)[..] else { panic!() };
        (answer.count, answer.value.clone())
    };
    let put = |value: &[u8], wide| kv(KvVerb::Put, b"k", Some(value), wide);
    let delete = || kv(KvVerb::Delete, b"k", None, false);
    let get = || kv(KvVerb::Get, b"k", None, false);
    let back = |bench: &mut Bench| {
        bench.restart();
        for number in [1, 2] {
            let mut again = Join { cluster: vec![3; 16], ..join(u64::from(number)) };
            again.node.as_mut().unwrap().number = number;
            bench.say(u64::from(number), to_control::Body::Join(again));
        }
    };
    assert_eq!(asked(&mut bench, 1, 1, 1, put(b"one", false)).0, 1);
    back(&mut bench);
    assert_eq!(
        asked(&mut bench, 1, 1, 1, put(b"one", false)).0,
        1,
        "it was the first, and is told so"
    );
    assert_eq!(asked(&mut bench, 1, 2, 2, put(b"again", true)).0, 1);
    back(&mut bench);
    assert_eq!(asked(&mut bench, 2, 1, 1, put(b"two", true)).0, 1);
    assert_eq!(asked(&mut bench, 1, 2, 2, put(b"again", true)).0, 1);
    assert_eq!(asked(&mut bench, 1, 3, 3, get()).1.as_deref(), Some(&b"two"[..]), "K-1");
    assert_eq!(asked(&mut bench, 1, 4, 4, delete()).0, 1);
    assert_eq!(asked(&mut bench, 2, 2, 2, put(b"three", true)).0, 1);
    back(&mut bench);
    assert_eq!(asked(&mut bench, 1, 4, 4, delete()).0, 1, "as it was answered before");
    assert_eq!(asked(&mut bench, 1, 5, 5, get()).1.as_deref(), Some(&b"three"[..]), "K-1");
    // What is answered, and whose node has left, need not be remembered.
    assert_eq!(bench.control.kv_done[&1].len(), 1);
    for peer in [1, 2] {
        bench.say(peer, to_control::Body::Leave(oxiray_wire::control::Text::default()));
    }
    assert!(bench.control.kv_done.is_empty());
    let left = |key: &(Table, Vec<u8>)| key.0 == Table::Meta && key.1.starts_with(b"kv-done");
    assert!(!bench.store.0.keys().any(left));
}

#[test]
fn a_value_that_is_too_large_is_refused() {
    let mut bench = Bench::new();
    let value = vec![0; MOST_VALUE_BYTES + 1];
    let asked = bench.say(50, to_control::Body::Kv(kv(KvVerb::Put, b"k", Some(&value), true)));
    assert!(asked.notes[0].contains("object store"));
    assert_eq!(ask(&mut bench, kv(KvVerb::Get, b"k", None, false)).value, None);
}

fn job(number: u8, ended_ms: u64) -> Job {
    Job { id: vec![number, 0, 0, 0], driver: process(1, 1).0, ended_ms, ..Job::default() }
}

#[test]
fn programs_end_with_their_node() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.say(1, to_control::Body::Job(job(1, 0)));
    bench.say(1, to_control::Body::Job(job(2, 0)));
    bench.say(1, to_control::Body::Job(job(2, 55)));
    bench.event(Event::Closed(PeerId(1)));
    bench.restart();
    let ended: Vec<u64> = bench.see().jobs.iter().map(|job| job.ended_ms).collect();
    assert_eq!(ended, [77, 55]);
    // One that was lost with its node has not succeeded.
    let jobs = bench.control.jobs.values();
    let failures: Vec<&str> = jobs.map(|job| job.failure.as_str()).collect();
    assert!(failures[0].starts_with("its node left the cluster: "), "{failures:?}");
    assert_eq!(failures[1], "");
}

#[test]
fn how_a_program_ended_while_nobody_listened_is_told_later() {
    let mut bench = Bench::new();
    bench.join(1);
    bench.say(1, to_control::Body::Job(job(1, 0)));
    bench.say(1, to_control::Body::Job(job(2, 0)));
    bench.restart();
    let mut again = Join { cluster: vec![3; 16], ..join(1) };
    again.node.as_mut().unwrap().number = 1;
    bench.say(1, to_control::Body::Join(again));
    let failures = |bench: &Bench| -> Vec<String> {
        bench.control.jobs.values().map(|job| job.failure.clone()).collect()
    };
    assert_eq!(failures(&bench), [UNSEEN_END, UNSEEN_END]);
    // What its node had to say all the while.
    bench.say(1, to_control::Body::Job(job(1, 55)));
    let late = Job { failure: "too late".into(), ..job(1, 56) };
    bench.say(1, to_control::Body::Job(late));
    bench.say(1, to_control::Body::Job(job(2, 0)));
    assert_eq!(failures(&bench), ["", UNSEEN_END]);
    assert_eq!(bench.control.ended_jobs.len(), 2);
}

/// Of the last thousand, by `MOST_KEPT` and `MOST_ENDED`.
#[test]
fn of_the_dead_and_the_ended_the_last_are_kept() {
    let mut bench = Bench::new();
    bench.join(1);
    for number in 0..1_100u32 {
        let id = actor(process(1, 1), number);
        bench.create(creation(id, 0));
        bench.news(1, id, ActorPhase::Dead, 0);
        let id = number.to_be_bytes().to_vec();
        let over =
            Job { id, ended_ms: u64::from(number) + 1, driver: process(1, 1).0, ..Job::default() };
        bench.say(1, to_control::Body::Job(over));
    }
    let asked = bench.watch(process(1, 1), actor(process(1, 1), 0));
    assert_eq!(asked.states(process(1, 1))[0].reason, "as it is", "all are remembered");
    let count = |bench: &Bench, wanted| bench.store.0.keys().filter(|key| key.0 == wanted).count();
    assert_eq!((count(&bench, Table::Dead), count(&bench, Table::Job)), (1_000, 1_000));
    bench.restart();
    assert!(bench.control.dead.get(&actor(process(1, 1), 99)).is_none());
    assert!(bench.control.dead.get(&actor(process(1, 1), 100)).is_some());
    assert!(!bench.control.jobs.contains_key(&99u32.to_be_bytes()[..]));
    assert!(bench.control.jobs.contains_key(&100u32.to_be_bytes()[..]));
}

#[test]
fn from_nothing_nothing_is_restored_and_damage_is_named() {
    let restore = |records| Control::restore(records, Now::default());
    assert!(restore(Vec::new()).unwrap().is_none());
    let record = |table, key: &[u8], value: &[u8]| Record {
        table,
        key: key.to_vec(),
        value: value.to_vec(),
    };
    let stray = record(Table::Kv, b"", b"");
    assert_eq!(restore(vec![stray]).unwrap_err(), Damaged::NoCluster);
    let cluster = record(Table::Meta, b"cluster", &[1; 16]);
    let bad = record(Table::Actor, &[0xab], b"");
    let error = restore(vec![cluster, bad]).unwrap_err();
    assert_eq!(error, Damaged::Record { table: Table::Actor, key: "ab".into() });
    assert!(error.to_string().contains("record ab of table `actor` is damaged"));
}

/// Each can be read, and all of them together break an invariant.
#[test]
fn records_that_cannot_be_are_damage() {
    let record = |table, key: &[u8], value: Vec<u8>| Record { table, key: key.to_vec(), value };
    let restored = |records: Vec<Record>| {
        let name = record(Table::Meta, b"cluster", vec![1; 16]);
        let last = record(Table::Meta, b"last-number", 2u32.to_be_bytes().to_vec());
        Control::restore([name, last].into_iter().chain(records).collect(), Now::default())
    };
    let node = |number, left: &str| {
        NodeInfo { number, left: left.into(), ..NodeInfo::default() }.encode_to_vec()
    };
    let id = actor(process(1, 1), 1);
    let made = |actor: &[u8], node| {
        let create = CreateActor { actor: actor.to_vec(), ..CreateActor::default() };
        ActorRecord { create: Some(create), node, ..ActorRecord::default() }.encode_to_vec()
    };
    let dead = record(Table::Dead, &id.0, DeadRecord::default().encode_to_vec());
    let name = NameRecord::default().encode_to_vec();
    let first = record(Table::Node, &1u32.to_be_bytes(), node(1, ""));
    assert!(restored(vec![first.clone()]).is_ok());
    assert!(restored(vec![first.clone(), record(Table::Actor, &id.0, made(&id.0, 1))]).is_ok());
    let cannot_be = [
        ("C-2: no number", vec![record(Table::Node, &[0; 4], node(0, ""))]),
        ("C-2: another's number", vec![record(Table::Node, &1u32.to_be_bytes(), node(2, ""))]),
        ("C-2: never given", vec![record(Table::Node, &3u32.to_be_bytes(), node(3, ""))]),
        ("it left", vec![record(Table::Node, &1u32.to_be_bytes(), node(1, "gone"))]),
        ("another actor", vec![first.clone(), record(Table::Actor, &id.0, made(&[9; 16], 1))]),
        ("C-1: nowhere", vec![record(Table::Actor, &id.0, made(&id.0, 1))]),
        ("C-8: cannot be made", vec![record(Table::Actor, &id.0, made(&id.0, 0))]),
        ("C-7: dead", vec![first, dead.clone(), record(Table::Actor, &id.0, made(&id.0, 1))]),
        ("C-7: called", vec![dead, record(Table::Name, &id.0, name)]),
        ("another job", vec![record(Table::Job, &[1; 4], Job::default().encode_to_vec())]),
    ];
    for (what, records) in cannot_be {
        assert!(matches!(restored(records), Err(Damaged::Record { .. })), "{what}");
    }
}
