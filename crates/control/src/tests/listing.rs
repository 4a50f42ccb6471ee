//! What tools are told of nodes, programs and actors.

use oxiray_wire::cluster::{ActorInfo, Job, Kv, KvVerb, SUBMISSIONS, from_control, to_control};
use oxiray_wire::control::{
    ActorPhase, Listing, NamedActor, Query, Submission, Topic, from_node, to_node,
};

use super::bench::{Bench, actor, creation, needs, process};
use crate::{Event, PeerId};

/// A tool at node 1 asks until it has everything; also how many parts that were.
fn list(bench: &mut Bench, topic: Topic) -> (Listing, usize) {
    let tool = process(1, 900);
    let mut whole = Listing::default();
    for parts in 1.. {
        let after = whole.next.clone();
        let query = Query { request: 7, topic: topic.into(), after, ..Query::default() };
        let asked = bench.of(tool, to_node::Body::Query(query));
        let [from_control::Body::ForProcess(said)] = &asked.to(1)[..] else { panic!() };
        assert_eq!(said.process, tool.0);
        let body = said.message.clone().and_then(|message| message.body);
        let Some(from_node::Body::Listing(part)) = body else { panic!() };
        assert_eq!(part.request, 7);
        whole.nodes.extend(part.nodes);
        whole.jobs.extend(part.jobs);
        whole.actors.extend(part.actors);
        whole.submissions.extend(part.submissions);
        whole.next = part.next;
        if whole.next.is_empty() {
            return (whole, parts);
        }
    }
    unreachable!()
}

fn find(bench: &mut Bench, id: oxiray_ids::ActorId) -> ActorInfo {
    let (listing, _) = list(bench, Topic::Actors);
    listing.actors.into_iter().find(|info| info.actor == id.0).expect("is listed")
}

#[test]
fn actors_are_listed_alive_and_dead_with_what_they_were() {
    let mut bench = Bench::new();
    bench.join(1);
    let (creator, id) = (process(1, 1), actor(process(1, 1), 1));
    let (name, namespace) = ("n".to_owned(), "s".to_owned());
    let named = NamedActor { name, namespace, actor: id.0.to_vec(), ..NamedActor::default() };
    bench.of(creator, to_node::Body::NameActor(named));
    let mut create = creation(id, 0);
    create.placement = needs("CPU", 1);
    bench.create(create);
    bench.news(1, id, ActorPhase::Alive, 0);
    let alive = find(&mut bench, id);
    assert_eq!((alive.phase(), alive.node, &alive.name[..]), (ActorPhase::Alive, 1, "n"));
    assert_eq!(alive.resources, needs("CPU", 1).unwrap().resources);
    bench.news(1, id, ActorPhase::Dead, 0);
    let dead = find(&mut bench, id);
    let was = ActorInfo { phase: dead.phase, reason: dead.reason.clone(), ..alive };
    assert_eq!((dead.phase(), &dead.reason[..]), (ActorPhase::Dead, "as it is"));
    assert_eq!(dead, was);
    // Its name is another's to have, and it is still known by it after a restart.
    bench.restart();
    assert_eq!(bench.see().actors[0].name, "n");
}

#[test]
fn many_actors_come_in_parts() {
    let mut bench = Bench::new();
    bench.join(1);
    let creator = process(1, 1);
    for counter in 0..500 {
        let mut create = creation(actor(creator, counter), 0);
        create.class_name = "x".repeat(400);
        bench.create(create);
        if counter % 2 == 0 {
            bench.news(1, actor(creator, counter), ActorPhase::Dead, 0);
        }
    }
    let (listing, parts) = list(&mut bench, Topic::Actors);
    assert!(parts > 2, "{parts}");
    let mut ids: Vec<_> = listing.actors.iter().map(|info| info.actor.clone()).collect();
    assert_eq!(ids.len(), 500);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 500);
    let dead = listing.actors.iter().filter(|info| info.phase() == ActorPhase::Dead);
    assert_eq!(dead.count(), 250);
}

#[test]
fn nodes_that_left_are_listed_after_the_others() {
    let mut bench = Bench::new();
    (1..=3).for_each(|peer| _ = bench.join(peer));
    bench.now.wall_ms = 1234;
    bench.event(Event::Closed(PeerId(2)));
    let (listing, _) = list(&mut bench, Topic::Nodes);
    let numbers: Vec<u32> = listing.nodes.iter().map(|info| info.number).collect();
    assert_eq!(numbers, [1, 3, 2]);
    assert!(!listing.nodes[2].left.is_empty() && listing.nodes[2].left_ms == 1234);
}

#[test]
fn a_program_says_how_it_ended() {
    let mut bench = Bench::new();
    bench.join(1);
    let driver = process(1, 1);
    let job = Job { id: vec![1, 0, 0, 0], driver: driver.0, started_ms: 5, ..Job::default() };
    bench.say(1, to_control::Body::Job(job.clone()));
    let failure = "killed by signal 9".to_owned();
    let ended = Job { ended_ms: 9, failure, ..job };
    bench.say(1, to_control::Body::Job(ended.clone()));
    bench.say(1, to_control::Body::ProcessGone(driver.0));
    assert_eq!(list(&mut bench, Topic::Jobs).0.jobs, [ended]);
}

#[test]
fn what_was_handed_in_is_listed_after_the_programs_by_its_first_line() {
    let mut bench = Bench::new();
    bench.join(1);
    let keep = |bench: &mut Bench, namespace: &str, key: &str, value: Vec<u8>| {
        let (namespace, key, verb) = (namespace.into(), key.into(), KvVerb::Put.into());
        let put = Kv { verb, namespace, key, value: Some(value), ..Kv::default() };
        bench.say(1, to_control::Body::Kv(put));
    };
    assert_eq!(list(&mut bench, Topic::Jobs), (Listing::default(), 1));
    // Tables beside it are none of it.
    keep(&mut bench, "joa", "x", b"1".to_vec());
    keep(&mut bench, "job_long", "x", b"1".to_vec());
    let line = |number: usize| format!("{number:07000}");
    for number in 0..30 {
        let value = format!("{}\n{}", line(number), "more".repeat(10_000));
        keep(&mut bench, SUBMISSIONS, &format!("job{number:02}"), value.into_bytes());
    }
    let driver = process(1, 1);
    let job = Job { id: vec![1, 0, 0, 0], driver: driver.0, ..Job::default() };
    bench.say(1, to_control::Body::Job(job.clone()));
    let (listing, parts) = list(&mut bench, Topic::Jobs);
    assert_eq!(listing.jobs, [job]);
    let all = (0..30).map(|number| Submission {
        id: format!("job{number:02}"),
        said: line(number).into_bytes(),
    });
    assert_eq!(listing.submissions, all.collect::<Vec<_>>());
    assert!((5..=6).contains(&parts), "{parts}");
}
