//! Everything in any order: after each event all invariants hold (N-1 to N-9),
//! and when all processes but the driver are gone nothing is held.

use oxiray_ids::ProcessId;
use oxiray_wire::control::{
    Allocate, Empty, Lease, ObjectReport, Peer, ProcessKind, Query, Slab, Stored, Text, to_node,
};
use proptest::prelude::*;

use super::bed::{Bed, DRIVER, MILLISECOND, shape};
use crate::demand::LeaseId;
use crate::event::Event;
use crate::process::Role;

#[derive(Clone, Debug)]
enum Step {
    Arrive,
    StartsFail,
    Demand { from: u64, key: u64, shape: usize, total: u64 },
    Return { from: u64, lease: u64 },
    Block { from: u64, blocked: bool },
    Connect { from: u64, to: u64 },
    Create { from: u64, actor: u8, shape: usize, held: usize },
    Created { actor: u8, error: bool },
    Answer { from: u64, actor: u8, declined: bool },
    Watch { from: u64, actor: u8 },
    Kill { from: u64, actor: u8 },
    Exiting { from: u64 },
    End { process: u64 },
    OutOfMemory { process: u64 },
    Observe { from: u64 },
    Allocate { from: u64, size: u64 },
    Free { from: u64, key: u64 },
    Tick { milliseconds: u64 },
}

const SHAPES: [&[(&str, u64)]; 6] =
    [&[], &[("CPU", 1)], &[("CPU", 2)], &[("CPU", 1), ("GPU", 1)], &[("mine", 1)], &[("CPU", 99)]];

fn step() -> impl Strategy<Value = Step> {
    let from = || 1..12u64;
    let actor = || 1..8u8;
    let pick = || 0..SHAPES.len();
    prop_oneof![
        6 => Just(Step::Arrive),
        1 => Just(Step::StartsFail),
        6 => (from(), 0..3u64, pick(), 0..6u64)
            .prop_map(|(from, key, shape, total)| Step::Demand { from, key, shape, total }),
        6 => (from(), 1..20u64).prop_map(|(from, lease)| Step::Return { from, lease }),
        4 => (from(), any::<bool>()).prop_map(|(from, blocked)| Step::Block { from, blocked }),
        2 => (from(), from()).prop_map(|(from, to)| Step::Connect { from, to }),
        4 => (from(), actor(), pick(), pick())
            .prop_map(|(from, actor, shape, held)| Step::Create { from, actor, shape, held }),
        4 => (actor(), any::<bool>()).prop_map(|(actor, error)| Step::Created { actor, error }),
        3 => (from(), actor(), any::<bool>())
            .prop_map(|(from, actor, declined)| Step::Answer { from, actor, declined }),
        2 => (from(), actor()).prop_map(|(from, actor)| Step::Watch { from, actor }),
        2 => (from(), actor()).prop_map(|(from, actor)| Step::Kill { from, actor }),
        1 => from().prop_map(|from| Step::Exiting { from }),
        3 => (2..12u64).prop_map(|process| Step::End { process }),
        1 => (2..12u64).prop_map(|process| Step::OutOfMemory { process }),
        1 => from().prop_map(|from| Step::Observe { from }),
        1 => (from(), 0..600_000u64).prop_map(|(from, size)| Step::Allocate { from, size }),
        1 => (from(), 0..100u64).prop_map(|(from, key)| Step::Free { from, key }),
        3 => (0..2000u64).prop_map(|milliseconds| Step::Tick { milliseconds }),
    ]
}

/// The process of that number, of the only node.
fn local(number: u64) -> ProcessId {
    ProcessId::new(1, number as u32)
}

fn take(bed: &mut Bed, step: Step) {
    match step {
        Step::Arrive => _ = bed.worker_arrives(),
        Step::StartsFail => bed.starts_fail(),
        Step::Demand { from, key, shape: pick, total } => {
            bed.demand(local(from), key, shape(SHAPES[pick]), total);
        }
        Step::Return { from, lease } => {
            bed.say(
                local(from),
                to_node::Body::ReturnLease(Lease { lease: LeaseId::first_of(1) + lease }),
            );
        }
        Step::Block { from, blocked: true } => {
            bed.say(local(from), to_node::Body::Blocked(Empty {}));
        }
        Step::Block { from, blocked: false } => {
            bed.say(local(from), to_node::Body::Unblocked(Empty {}));
        }
        Step::Connect { from, to } => {
            bed.say(local(from), to_node::Body::Connect(Peer { process: local(to).0 }));
        }
        Step::Create { from, actor, shape: pick, held } => {
            let (need, held) = (shape(SHAPES[pick]), shape(SHAPES[held]));
            bed.name(local(from), actor, if actor % 2 == 0 { "even" } else { "odd" });
            let (restarts, detached) = (i64::from(actor % 3), actor % 4 == 0);
            bed.create_lasting(local(from), actor, need, held, restarts, detached);
        }
        Step::Created { actor, error } => {
            if bed.find_actor_worker(actor).is_some() {
                bed.say_failed(actor, if error { b"bad" } else { b"" });
            }
        }
        Step::Answer { from, actor, declined } => {
            // Of who was asked, or of anybody.
            let worker = bed.find_actor_worker(actor).filter(|_| from % 3 != 0);
            bed.answer_start(worker.unwrap_or(local(from)), actor, declined);
        }
        Step::Watch { from, actor } => bed.watch(local(from), actor),
        Step::Kill { from, actor } => bed.kill_actor(local(from), actor),
        Step::Exiting { from } => {
            bed.say(local(from), to_node::Body::Exiting(Text::default()));
        }
        Step::End { process } => bed.end(local(process), "exit code 1"),
        Step::OutOfMemory { process } => {
            let reason = "too large".into();
            let over_limit = process % 3 == 0;
            bed.event(Event::OutOfMemory { process: local(process), reason, over_limit });
        }
        Step::Observe { from } => {
            if bed.node.processes.len() < 12 {
                let observer = bed.admit(ProcessKind::Observer).unwrap();
                bed.event(Event::Ready(observer));
                bed.say(observer, to_node::Body::Query(Query::default()));
                let round = Query { topic: 1, ..Query::default() };
                bed.say(observer, to_node::Body::Query(round.clone()));
                bed.say(local(from), to_node::Body::Query(round));
                let report = ObjectReport { request: 2, last: true, ..ObjectReport::default() };
                bed.say(local(from), to_node::Body::ObjectReport(report));
                bed.say(observer, to_node::Body::Connect(Peer { process: local(from).0 }));
                bed.end(observer, "it has seen enough");
            }
        }
        Step::Allocate { from, size } => {
            let owner = local(1 + size % 12).0;
            bed.say(local(from), to_node::Body::Allocate(Allocate { request: 1, size, owner }));
        }
        Step::Free { from, key } => {
            bed.say(local(from), to_node::Body::Free(Stored { keys: vec![key] }));
            bed.say(local(from), to_node::Body::Unpinned(Stored { keys: vec![key] }));
            let slab = Slab { len: 100, ..Slab::default() };
            bed.say(local(from), to_node::Body::WantSlab(slab));
        }
        Step::Tick { milliseconds } => bed.tick_after(milliseconds * MILLISECOND),
    }
    // Whoever is killed ends, sooner or later; here at once or by a later step.
    if bed.killed.len() > 3 {
        for process in std::mem::take(&mut bed.killed) {
            bed.end(process, "killed by signal 9 (SIGKILL)");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn all_invariants_hold_at_all_times(steps in prop::collection::vec(step(), 0..150)) {
        let mut bed = Bed::with(shape(&[("CPU", 3), ("GPU", 2), ("mine", 1)]), 2);
        for step in steps {
            take(&mut bed, step);
        }
        // Withdraw all wishes of the driver, then let every other process end.
        for key in 0..3 {
            bed.demand(DRIVER, key, shape(&[]), 0);
        }
        for actor in 1..8 {
            bed.kill_actor(DRIVER, actor);
        }
        loop {
            let others = bed.node.processes.keys().copied().filter(|&id| id != DRIVER);
            let others: Vec<ProcessId> = others.collect();
            if others.is_empty() {
                break;
            }
            for process in others {
                bed.end(process, "exit code 0");
            }
        }
        prop_assert!(bed.node.leases.is_empty());
        prop_assert!(bed.node.actors.is_empty());
        prop_assert!(bed.node.deaths.is_empty(), "D-1");
        prop_assert!(bed.node.member.creating.is_empty() && bed.node.member.killing.is_empty());
        prop_assert!(bed.node.processes[&DRIVER].watched.is_empty());
        prop_assert_eq!(bed.node.ledger.available(), bed.node.ledger.total());
        prop_assert_eq!(bed.node.bells.len(), 2, "the driver and the gateway");
        prop_assert!(bed.node.rounds.values().all(|round| round.asker == DRIVER));
        prop_assert!(bed.node.processes[&DRIVER].channels.is_empty());
    }

    /// Whoever asks for what fits is served in the end, if all others give back.
    #[test]
    fn nobody_starves(totals in prop::collection::vec(1..30u64, 1..6)) {
        let mut bed = Bed::ready(2, 2);
        // Zero-CPU leases make workers, which then ask like the driver does.
        bed.demand(DRIVER, 9, shape(&[]), totals.len() as u64);
        bed.workers_arrive();
        let askers: Vec<ProcessId> = bed.grants().iter().map(|grant| grant.worker).collect();
        prop_assert_eq!(askers.len(), totals.len());
        for (&asker, &total) in askers.iter().zip(&totals) {
            bed.demand(asker, 1, shape(&[("CPU", 1)]), total);
        }
        let mut served = 0;
        for _ in 0..2 * totals.iter().sum::<u64>() + 10 {
            bed.workers_arrive();
            for grant in bed.grants() {
                served += 1;
                let lease = grant.lease;
                bed.say(grant.to, to_node::Body::ReturnLease(Lease { lease }));
            }
        }
        prop_assert_eq!(served, totals.iter().sum::<u64>());
        let leased = bed.node.processes.values().filter(|p| matches!(p.role, Role::Leased(_)));
        prop_assert_eq!(leased.count(), totals.len());
    }
}
