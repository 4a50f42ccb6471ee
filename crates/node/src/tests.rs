//! Tests of the node, each of one behaviour; `random` does everything in any order, and in `hostile`
//! everybody says anything.

mod bed;
mod environments;
mod full;
mod hostile;
mod random;
mod two_nodes;

use oxiray_wire::control::from_node::Body;
use oxiray_wire::control::{ActorPhase, Empty, Lease, Peer, Shape, Text, to_node};

use self::bed::{Bed, DRIVER, MILLISECOND, SECOND, cpus, gpus, shape};
use crate::demand::LeaseId;
use crate::event::AdmitError;

#[test]
fn workers_are_started_at_once_and_no_more_than_could_be_used() {
    let mut bed = Bed::new(2, 2);
    assert_eq!(bed.starting, 2);
    bed.demand(DRIVER, 1, cpus(1), 100);
    assert_eq!(bed.starting, 2, "two CPUs use two workers, however long the backlog");
    bed.workers_arrive();
    assert_eq!(bed.grants().len(), 2);
    assert_eq!(bed.starting, 0);
}

#[test]
fn a_grant_comes_after_its_channel_and_only_the_first_time() {
    let mut bed = Bed::ready(1, 1);
    bed.demand(DRIVER, 1, cpus(1), 1);
    let [grant] = &bed.grants()[..] else { panic!() };
    let lease = grant.lease;
    assert_eq!(bed.channels, [(1, 2)]);
    bed.say(DRIVER, to_node::Body::ReturnLease(Lease { lease }));
    bed.say(DRIVER, to_node::Body::ReturnLease(Lease { lease }));
    bed.demand(DRIVER, 1, cpus(1), 2);
    assert_eq!(bed.grants().len(), 1);
    assert_eq!(bed.channels.len(), 1);
}

#[test]
fn a_smaller_total_withdraws_what_is_not_granted() {
    let mut bed = Bed::ready(1, 1);
    bed.demand(DRIVER, 1, cpus(1), 5);
    let lease = bed.grants()[0].lease;
    bed.demand(DRIVER, 1, cpus(1), 0);
    bed.say(DRIVER, to_node::Body::ReturnLease(Lease { lease }));
    assert!(bed.grants().is_empty(), "N-3");
    bed.demand(DRIVER, 1, cpus(1), 2);
    assert_eq!(bed.grants().len(), 1, "the total counts from the beginning");
}

#[test]
fn a_blocked_worker_lends_its_cpu_to_its_own_tasks() {
    let mut bed = Bed::ready(1, 1);
    bed.demand(DRIVER, 1, cpus(1), 1);
    let parent = bed.grants()[0].worker;
    bed.demand(parent, 1, cpus(1), 1);
    assert_eq!(bed.starting, 0);
    bed.say(parent, to_node::Body::Blocked(Empty {}));
    assert_eq!(bed.starting, 1, "the CPU is there, a worker is not");
    bed.workers_arrive();
    let child = bed.grants().remove(0);
    assert_eq!(child.to, parent);
    bed.say(parent, to_node::Body::Unblocked(Empty {}));
    bed.say(parent, to_node::Body::ReturnLease(Lease { lease: child.lease }));
    bed.demand(parent, 1, cpus(1), 2);
    assert!(bed.grants().is_empty(), "the debt took what came back");
}

#[test]
fn backlogs_take_turns() {
    let mut bed = Bed::ready(2, 2);
    bed.demand(DRIVER, 1, cpus(1), 1000);
    let grants = bed.grants();
    let worker = grants[0].worker;
    bed.demand(worker, 1, cpus(1), 1000);
    let mut served = Vec::new();
    let mut leases: Vec<_> = grants[1..].iter().map(|grant| (grant.to, grant.lease)).collect();
    for _ in 0..10 {
        let (holder, lease) = leases.remove(0);
        bed.say(holder, to_node::Body::ReturnLease(Lease { lease }));
        for grant in bed.grants() {
            served.push(grant.to);
            leases.push((grant.to, grant.lease));
        }
    }
    let of_driver = served.iter().filter(|&&to| to == DRIVER).count();
    assert_eq!(of_driver, 5, "{served:?}");
}

#[test]
fn holders_are_asked_back_at_once_and_then_every_10_ms() {
    let mut bed = Bed::ready(1, 1);
    bed.demand(DRIVER, 1, cpus(1), 1);
    bed.demand(DRIVER, 1, cpus(1), 2);
    assert_eq!(bed.reclaims(), 0, "more of its own is no reason");
    bed.demand(DRIVER, 2, shape(&[("CPU", 1), ("mine", 1)]), 1);
    assert_eq!(bed.reclaims(), 0, "what can never fit is none either");
    bed.create_actor(DRIVER, 1, cpus(1), cpus(0));
    assert_eq!(bed.reclaims(), 1);
    for _ in 0..3 {
        bed.tick_after(4 * MILLISECOND);
    }
    assert_eq!(bed.reclaims(), 1, "12 ms later");
    let lease = bed.grants()[0].lease;
    bed.demand(DRIVER, 1, cpus(1), 1);
    bed.say(DRIVER, to_node::Body::ReturnLease(Lease { lease }));
    bed.tick_after(50 * MILLISECOND);
    bed.say_created(1);
    bed.tick_after(50 * MILLISECOND);
    assert_eq!(bed.reclaims(), 0, "nothing stands in the way any more");
}

#[test]
fn what_cannot_run_is_warned_about_once() {
    let mut bed = Bed::ready(2, 2);
    bed.demand(DRIVER, 1, gpus(1), 1);
    bed.tick_after(SECOND / 2);
    assert!(bed.warnings().is_empty());
    bed.tick_after(SECOND);
    bed.demand(DRIVER, 2, gpus(1), 1);
    bed.tick_after(2 * SECOND);
    assert_eq!(
        bed.warnings(),
        ["tasks cannot be scheduled: it needs {GPU: 1}, but no node has a GPU \
          (needs GPU: 1; the cluster has CPU: 2). It runs when that changes; `oxiray status` \
          shows what waits."]
    );
    assert!(bed.node.next_wakeup().is_none(), "and then there is peace");
}

#[test]
fn waiting_for_what_actors_hold_is_warned_about_later() {
    let mut bed = Bed::ready(1, 1);
    bed.create_actor(DRIVER, 1, cpus(1), cpus(1));
    bed.say_created(1);
    bed.demand(DRIVER, 1, cpus(1), 1);
    bed.tick_after(9 * SECOND);
    assert!(bed.warnings().is_empty());
    bed.tick_after(2 * SECOND);
    let [text] = &bed.warnings()[..] else { panic!() };
    assert!(text.contains("has waited for 10 s"), "{text}");
    bed.tick_after(60 * SECOND);
    assert!(bed.warnings().is_empty());
}

#[test]
fn the_end_of_a_leased_worker_frees_its_resources() {
    let mut bed = Bed::ready(1, 1);
    bed.demand(DRIVER, 1, cpus(1), 2);
    let worker = bed.grants()[0].worker;
    bed.end(worker, "exit code 1");
    let [died] = &bed.deaths(DRIVER)[..] else { panic!() };
    assert_eq!((died.process, died.reason.as_str()), (worker.0, "exit code 1"));
    assert_eq!(died.last_lines, ["last words"]);
    bed.workers_arrive();
    assert_eq!(bed.grants().len(), 1);
    bed.say(DRIVER, to_node::Body::Connect(Peer { process: worker.0 }));
    assert_eq!(bed.deaths(DRIVER)[0].reason, "exit code 1", "late questions are answered");
}

#[test]
fn what_a_process_has_goes_with_it() {
    let mut bed = Bed::ready(4, 4);
    bed.demand(DRIVER, 1, cpus(1), 1);
    let parent = bed.grants()[0].worker;
    bed.demand(parent, 1, cpus(1), 9);
    let children: Vec<_> = bed.grants().iter().map(|grant| grant.worker).collect();
    assert_eq!(children.len(), 3);
    bed.say(DRIVER, to_node::Body::Connect(Peer { process: children[0].0 }));
    bed.create_actor(parent, 1, cpus(0), cpus(0));
    bed.workers_arrive();
    bed.watch(DRIVER, 1);
    bed.end(parent, "exit code 1");
    assert_eq!(bed.killed.len(), 4, "three workers and the actor's");
    let state = bed.states(DRIVER).pop().unwrap();
    assert_eq!((state.phase(), state.reason.as_str()), (ActorPhase::Dead, "its owner died"));
    assert_eq!(bed.node.ledger.available(), bed.node.ledger.total());
}

/// One CPU and one worker, which has worked.
fn experienced() -> (Bed, oxiray_ids::ProcessId) {
    let mut bed = Bed::ready(1, 1);
    bed.demand(DRIVER, 1, cpus(1), 1);
    let [grant] = &bed.grants()[..] else { panic!() };
    let (worker, lease) = (grant.worker, grant.lease);
    bed.say(DRIVER, to_node::Body::ReturnLease(Lease { lease }));
    bed.create_actor(DRIVER, 1, cpus(1), cpus(1));
    assert_eq!(bed.actor_worker(1), worker);
    (bed, worker)
}

#[test]
fn a_worker_whose_objects_others_hold_is_no_actor() {
    let (mut bed, first) = experienced();
    bed.answer_start(first, 1, true);
    assert_eq!(bed.find_actor_worker(1), None, "the only idle worker is not asked again");
    bed.workers_arrive();
    assert_ne!(bed.actor_worker(1), first);
    bed.say_created(1);
    assert_eq!(
        bed.states(DRIVER).pop().unwrap().phase(),
        ActorPhase::Alive,
        "a new one is not asked"
    );
    bed.kill_actor(DRIVER, 1);
    bed.end(bed.killed[0], "killed");
    bed.demand(DRIVER, 1, cpus(1), 2);
    let [grant] = &bed.grants()[..] else { panic!() };
    assert_eq!(grant.worker, first, "for tasks it is as good as any");
    bed.say(DRIVER, to_node::Body::ReturnLease(Lease { lease: grant.lease }));
    bed.create_actor(DRIVER, 2, cpus(1), cpus(1));
    assert_eq!(bed.actor_worker(2), first, "who worked meanwhile is asked again");
}

#[test]
fn an_actor_that_is_not_wanted_takes_nothing_with_it_before_its_worker_has_agreed() {
    for declined in [false, true] {
        let (mut bed, worker) = experienced();
        bed.kill_actor(DRIVER, 1);
        assert_eq!(bed.states(DRIVER).pop().unwrap().phase(), ActorPhase::Dead);
        assert!(bed.killed.is_empty());
        assert_ne!(bed.node.ledger.available(), bed.node.ledger.total(), "it may run there");
        bed.answer_start(worker, 1, declined);
        assert_eq!(bed.killed.is_empty(), declined);
        bed.end(worker, "it ended");
        assert_eq!(bed.node.ledger.available(), bed.node.ledger.total());
        let exits =
            bed.take(|to, body| (to == worker && matches!(body, Body::Exit(_))).then_some(()));
        assert_eq!(exits.len(), usize::from(declined), "it goes when nobody holds what it owns");
    }
}

#[test]
fn a_worker_that_ends_before_it_has_answered_costs_no_restart() {
    let (mut bed, worker) = experienced();
    bed.end(worker, "exit code 1");
    bed.workers_arrive();
    bed.say_created(1);
    let state = bed.states(DRIVER).pop().unwrap();
    assert_eq!((state.phase(), state.restarts), (ActorPhase::Alive, 0));
}

#[test]
fn a_worker_that_made_an_actor_is_none() {
    let mut bed = Bed::ready(2, 1);
    bed.demand(DRIVER, 1, cpus(1), 1);
    let [grant] = &bed.grants()[..] else { panic!() };
    let (maker, lease) = (grant.worker, grant.lease);
    bed.create_actor(maker, 1, cpus(0), cpus(0));
    bed.workers_arrive();
    bed.say_created(1);
    bed.say(DRIVER, to_node::Body::ReturnLease(Lease { lease }));
    bed.create_actor(DRIVER, 2, cpus(0), cpus(0));
    bed.workers_arrive();
    assert_ne!(bed.actor_worker(2), maker, "its actor would end with the other");
}

#[test]
fn an_actor_gives_back_what_it_needed_only_for_its_place() {
    let mut bed = Bed::ready(1, 1);
    for number in 1..=3 {
        bed.create_actor(DRIVER, number, cpus(1), cpus(0));
    }
    for number in 1..=3 {
        bed.workers_arrive();
        assert!(bed.states(DRIVER).is_empty());
        bed.say_created(number);
        let [state] = &bed.states(DRIVER)[..] else { panic!() };
        assert_eq!((state.phase(), state.actor[0]), (ActorPhase::Alive, number));
    }
    bed.workers_arrive();
    bed.demand(DRIVER, 1, cpus(1), 1);
    assert_eq!(bed.grants().len(), 1, "the pool was refilled and the CPU is free");
}

#[test]
fn actors_die_for_their_reason() {
    let mut bed = Bed::ready(4, 4);
    for number in 1..=5 {
        bed.create_actor(DRIVER, number, cpus(if number == 5 { 9 } else { 1 }), cpus(1));
    }
    for number in 1..=3 {
        bed.say_created(number);
    }
    bed.states(DRIVER);
    let reason = |bed: &mut Bed| bed.states(DRIVER).pop().unwrap().reason;
    bed.end(bed.actor_worker(1), "killed by signal 11 (SIGSEGV)");
    assert_eq!(
        reason(&mut bed),
        "its process 1000 on node 070707070707 () ended: killed by signal 11 (SIGSEGV). The \
         last lines it printed:\n    last words"
    );
    let worker = bed.actor_worker(2);
    bed.say(worker, to_node::Body::Exiting(Text { text: "it asked to exit".into() }));
    bed.end(worker, "exit code 0");
    assert!(bed.deaths(DRIVER).last().unwrap().intended);
    let place = |text: &str| format!("{text} (it was process 1000 on node 070707070707 ())");
    assert_eq!(reason(&mut bed), place("it asked to exit"));
    let worker = bed.actor_worker(3);
    bed.kill_actor(DRIVER, 3);
    assert_eq!(bed.killed, [worker]);
    bed.end(worker, "killed by signal 9 (SIGKILL)");
    assert_eq!(reason(&mut bed), place("it was killed by ray.kill"));
    bed.say_failed(4, b"error");
    let state = bed.states(DRIVER).pop().unwrap();
    assert_eq!((state.phase(), &state.creation_error[..]), (ActorPhase::Dead, &b"error"[..]));
    bed.kill_actor(DRIVER, 5);
    assert_eq!(reason(&mut bed), "it was killed by ray.kill");
    bed.watch(DRIVER, 1);
    assert!(reason(&mut bed).starts_with("its process 1000"), "the dead are remembered");
    bed.watch(DRIVER, 99);
    assert_eq!(reason(&mut bed), "unknown actor");
    assert_eq!(bed.node.ledger.available(), bed.node.ledger.total());
}

#[test]
fn watchers_get_a_channel_before_they_hear_of_life() {
    let mut bed = Bed::ready(2, 2);
    bed.create_actor(DRIVER, 1, cpus(0), cpus(0));
    bed.workers_arrive();
    bed.demand(DRIVER, 1, cpus(1), 1);
    let other = bed.grants()[0].worker;
    bed.watch(other, 1);
    assert_eq!(bed.states(other).pop().unwrap().phase(), ActorPhase::Pending);
    bed.channels.clear();
    bed.say_created(1);
    let numbers = [other, bed.actor_worker(1)].map(|id| u64::from(id.number()));
    assert_eq!(bed.channels, [numbers.into()]);
    assert_eq!(bed.states(other).pop().unwrap().phase(), ActorPhase::Alive);
}

#[test]
fn idle_workers_beyond_those_to_keep_are_sent_away() {
    let mut bed = Bed::ready(3, 1);
    bed.demand(DRIVER, 1, cpus(1), 3);
    bed.workers_arrive();
    for grant in bed.grants() {
        bed.say(DRIVER, to_node::Body::ReturnLease(Lease { lease: grant.lease }));
    }
    bed.tick_after(SECOND / 2);
    let exits = |bed: &mut Bed| bed.take(|_, body| matches!(body, Body::Exit(_)).then_some(()));
    assert!(exits(&mut bed).is_empty());
    bed.tick_after(SECOND);
    assert_eq!(exits(&mut bed).len(), 2);
    bed.tick_after(SECOND);
    assert!(exits(&mut bed).is_empty() && bed.node.next_wakeup().is_none());
}

#[test]
fn starts_that_fail_are_tried_again_ever_more_slowly() {
    let mut bed = Bed::new(2, 2);
    for _ in 0..10 {
        bed.starts_fail();
        assert_eq!(bed.starting, 0, "not at once");
        bed.tick_after(10 * SECOND);
        assert_eq!(bed.starting, 2);
    }
    assert_eq!(bed.warnings().len(), 1);
    bed.workers_arrive();
    bed.tick_after(SECOND);
    assert!(bed.node.next_wakeup().is_none());
}

#[test]
fn there_are_only_so_many_bells() {
    let mut bed = Bed::new(1, 0);
    let kind = oxiray_wire::control::ProcessKind::Worker;
    let limit = bed.node.setup.max_processes - 1;
    for _ in 1..limit {
        bed.admit(kind).unwrap();
    }
    let limited_by = String::new();
    assert_eq!(bed.admit(kind), Err(AdmitError::TooManyProcesses { limit, limited_by }));
    assert!(bed.admit(oxiray_wire::control::ProcessKind::Observer).is_ok());
    bed.demand(DRIVER, 1, cpus(1), 1);
    assert_eq!(bed.starting, 0, "a worker without a bell is of no use");
}

#[test]
fn only_the_driver_ends_the_session() {
    let mut bed = Bed::ready(1, 1);
    bed.say(oxiray_ids::ProcessId::new(1, 2), to_node::Body::Stop(Text::default()));
    assert_eq!(bed.shut_down, None);
    bed.say(DRIVER, to_node::Body::Stop(Text::default()));
    assert_eq!(bed.shut_down, Some(true));
    bed.end(DRIVER, "it closed its connection");
    assert_eq!(bed.shut_down, Some(false));
}

#[test]
fn many_actors_wait_cheaply_and_in_order() {
    let mut bed = Bed::ready(1, 1);
    for number in 1..=200 {
        bed.create_actor(DRIVER, number, cpus(1), cpus(0));
    }
    for number in 1..=25 {
        bed.workers_arrive();
        bed.say_created(number);
    }
    let order: Vec<u8> = bed.states(DRIVER).iter().map(|state| state.actor[0]).collect();
    assert_eq!(order, (1..=25).collect::<Vec<u8>>());
    assert!(bed.starting <= 4, "few start at the same time");
}

#[test]
fn a_large_shape_is_served_in_spite_of_many_small_ones() {
    let mut bed = Bed::ready(2, 2);
    bed.demand(DRIVER, 1, cpus(1), 1_000_000);
    let mut leases: Vec<u64> = bed.grants().iter().map(|grant| grant.lease).collect();
    bed.demand(DRIVER, 2, cpus(2), 1);
    let mut small = 0;
    for round in 0.. {
        // Small tasks of 20 ms that never end at the same time.
        bed.tick_after(10 * MILLISECOND);
        if !leases.is_empty() {
            let lease = leases.remove(0);
            bed.say(DRIVER, to_node::Body::ReturnLease(Lease { lease }));
        }
        let granted: Vec<u64> = bed.grants().iter().map(|grant| grant.lease).collect();
        let is_large = |lease: &u64| {
            let shape = bed.node.leases[&LeaseId(*lease)].shape;
            bed.node.schedule.shapes[shape.0].shape == cpus(2)
        };
        if granted.iter().any(is_large) {
            assert!(small > 10, "until then the small ones ran");
            return;
        }
        assert!(round < 30, "300 ms are enough");
        small += granted.len();
        leases.extend(granted);
    }
}

#[test]
fn a_large_shape_that_waits_for_a_long_task_does_not_stop_the_others() {
    let mut bed = Bed::ready(2, 2);
    bed.demand(DRIVER, 1, cpus(1), 1);
    bed.grants();
    bed.demand(DRIVER, 2, cpus(2), 1);
    bed.tick_after(SECOND / 4);
    bed.demand(DRIVER, 1, cpus(1), 2);
    assert!(bed.grants().is_empty(), "the elder has its chance");
    let begin = bed.now;
    while bed.grants().is_empty() {
        bed.now = bed.node.next_wakeup().expect("it does not wait for an event");
        bed.tick_after(0);
        assert!(bed.now < begin + SECOND, "which does not last");
    }
}

#[test]
fn what_waited_longest_does_not_hold_back_what_is_more_urgent() {
    let mut bed = Bed::ready(2, 2);
    bed.demand(DRIVER, 1, cpus(1), 1);
    bed.grants();
    bed.demand(DRIVER, 2, cpus(2), 1);
    bed.tick_after(SECOND / 4);
    bed.demand(DRIVER, 1, cpus(1), 2);
    assert!(bed.grants().is_empty(), "the elder has its chance");
    bed.demand(DRIVER, 3, Shape { priority: 1, ..cpus(1) }, 1);
    assert_eq!(bed.grants().len(), 1);
}

#[test]
fn an_actor_is_started_again_as_often_as_it_may_be() {
    let mut bed = Bed::ready(2, 2);
    bed.create_lasting(DRIVER, 1, cpus(1), cpus(0), 2, false);
    for restarts in 1..=2 {
        bed.workers_arrive();
        bed.say_created(1);
        bed.states(DRIVER);
        bed.end(bed.actor_worker(1), "killed by signal 11 (SIGSEGV)");
        let states = bed.states(DRIVER);
        assert_eq!(states.len(), 1);
        assert_eq!((states[0].phase(), states[0].restarts), (ActorPhase::Restarting, restarts));
    }
    bed.workers_arrive();
    bed.say_created(1);
    bed.states(DRIVER);
    bed.end(bed.actor_worker(1), "killed by signal 11 (SIGSEGV)");
    assert_eq!(bed.states(DRIVER)[0].phase(), ActorPhase::Dead);
}

#[test]
fn an_actor_that_was_killed_or_went_by_itself_stays_away() {
    for killed in [true, false] {
        let mut bed = Bed::ready(2, 2);
        bed.create_lasting(DRIVER, 1, cpus(1), cpus(0), -1, false);
        bed.say_created(1);
        let worker = bed.actor_worker(1);
        if killed {
            bed.kill_actor(DRIVER, 1);
        } else {
            bed.say(worker, to_node::Body::Exiting(Text { text: "exit_actor()".into() }));
        }
        bed.end(worker, "exit code 0");
        let states = bed.states(DRIVER);
        assert_eq!(states.last().expect("news").phase(), ActorPhase::Dead, "{killed}");
    }
}

#[test]
fn a_name_is_one_actors_until_it_is_dead() {
    let mut bed = Bed::ready(2, 2);
    assert_eq!(bed.name(DRIVER, 1, "a"), [1; 16]);
    assert_eq!(bed.name(DRIVER, 2, "a"), [1; 16], "it is taken");
    bed.create_actor(DRIVER, 1, cpus(1), cpus(0));
    bed.say_created(1);
    let worker = bed.actor_worker(1);
    assert_eq!(bed.name(worker, 3, "b"), [3; 16]);
    bed.end(worker, "exit code 1");
    assert_eq!(bed.name(DRIVER, 4, "a"), [4; 16], "free after its bearer's death");
    assert_eq!(bed.name(DRIVER, 5, "b"), [5; 16], "its actor will never be made");
}

#[test]
fn a_detached_actor_outlives_its_creator() {
    let mut bed = Bed::ready(2, 2);
    bed.demand(DRIVER, 1, cpus(1), 1);
    let creator = bed.grants()[0].worker;
    bed.create_lasting(creator, 4, cpus(1), cpus(0), 0, true);
    bed.workers_arrive();
    bed.say_created(4);
    let worker = bed.actor_worker(4);
    bed.end(creator, "exit code 0");
    assert_eq!(bed.find_actor_worker(4), Some(worker));
    assert!(!bed.killed.contains(&worker));
    bed.kill_actor(DRIVER, 4);
    assert!(bed.killed.contains(&worker));
}

#[test]
fn a_detached_actor_that_has_no_worker_yet_outlives_its_creator() {
    for is_starting in [false, true] {
        let mut bed = Bed::ready(2, 2);
        bed.demand(DRIVER, 1, cpus(1), 1);
        let creator = bed.grants()[0].worker;
        let need = if is_starting { cpus(1) } else { cpus(2) };
        bed.create_lasting(creator, 4, need, cpus(0), 0, true);
        assert_eq!(bed.find_actor_worker(4).is_some(), is_starting);
        bed.end(creator, "exit code 0");
        bed.workers_arrive();
        let worker = bed.actor_worker(4);
        assert!(!bed.killed.contains(&worker), "{is_starting}");
        bed.say_created(4);
        bed.kill_actor(DRIVER, 4);
        assert!(bed.killed.contains(&worker));
    }
}
