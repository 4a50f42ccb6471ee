//! A real `oxirayd` over its socket, with a zygote whose workers do no work.

mod common;

use std::time::Duration;

use common::{Driver, is_gone_soon, shape};
use oxiray_wire::control::from_node::Body;
use oxiray_wire::control::{
    Actor, ActorPhase, ActorState, Allocate, Allocated, ChannelOpened, CreateActor, Granted, Lease,
    Peer, Text, to_node,
};

const SOON: Duration = Duration::from_secs(2);

fn granted(body: &Body) -> Option<Granted> {
    match body {
        Body::Granted(granted) => Some(granted.clone()),
        _ => None,
    }
}

fn channel_to(worker: u64) -> impl Fn(&Body) -> Option<ChannelOpened> {
    move |body| match body {
        Body::ChannelOpened(opened) if opened.peer == worker => Some(opened.clone()),
        _ => None,
    }
}

/// A lease and the worker's process id.
fn lease(driver: &mut Driver) -> (Granted, u32) {
    let granted = driver.until("grant", granted);
    let opened = driver.until("channel", channel_to(granted.worker));
    (granted, opened.peer_pid)
}

#[test]
fn a_session_from_registration_to_its_end() {
    let mut driver = Driver::start(|_| {});
    let registered = driver.until("registration", |body| match body {
        Body::Registered(registered) => Some(registered.clone()),
        _ => None,
    });
    // The first process of the only node, whose gateway has the first bell.
    let first = oxiray_ids::ProcessId::new(1, 1).0;
    assert_eq!((registered.process, registered.bell, registered.driver), (first, 1, first));
    assert_eq!((registered.job.len(), registered.node.len()), (4, 28));
    assert_eq!((driver.descriptors, registered.store_size), (3, 1 << 20));

    // More than there are CPUs: two are granted, and the rest when one comes back.
    driver.demand(7, 1, 3);
    let (first, first_pid) = lease(&mut driver);
    let (second, second_pid) = lease(&mut driver);
    assert_eq!((first.shape_key, second.shape_key), (7, 7));
    assert_ne!(first.worker, second.worker);
    driver.send(to_node::Body::ReturnLease(Lease { lease: first.lease }));
    let third = driver.until("third grant", granted);
    assert_eq!(third.worker, first.worker, "it has a channel already");

    // What workers print arrives with its name.
    for pid in [first_pid, second_pid] {
        driver.until("printed line", |body| match body {
            Body::Log(log) if log.pid == pid => {
                assert_eq!((log.name.as_str(), log.is_error), ("fake", false));
                assert_eq!(log.lines, [format!("hello from {pid}")]);
                Some(())
            }
            _ => None,
        });
    }

    // A death is told with its reason and the last lines.
    oxiray_sys::process::kill(second_pid);
    let died = driver.until("death", |body| match body {
        Body::ProcessDied(died) => Some(died.clone()),
        _ => None,
    });
    assert_eq!((died.process, died.pid), (second.worker, second_pid));
    assert_eq!(died.reason, "killed by signal 9 (SIGKILL)");
    assert_eq!(died.last_lines, [format!("hello from {second_pid}")]);
    assert!(!died.intended);

    // Its CPU is free again, and another worker takes its place.
    driver.demand(7, 1, 4);
    let (fourth, fourth_pid) = lease(&mut driver);
    assert!(fourth.worker > second.worker);

    driver.send(to_node::Body::Stop(Text::default()));
    driver.until("answer to stop", |body| matches!(body, Body::Stopped(_)).then_some(()));
    let (status, took) = driver.ended();
    assert!(status.success() && took < SOON, "{status} after {took:?}");
    assert_eq!(driver.left(), ["events", "lock", "logs", "record"]);
    assert!(is_gone_soon(first_pid) && is_gone_soon(fourth_pid));
}

#[test]
fn a_driver_that_vanishes_leaves_nothing_but_logs() {
    let mut driver = Driver::start(|_| {});
    driver.demand(1, 1, 1);
    let (_, pid) = lease(&mut driver);
    driver.until("printed line", |body| match body {
        Body::Log(log) if log.pid == pid => Some(()),
        _ => None,
    });
    driver.socket = None;
    let (_, took) = driver.ended();
    assert!(took < SOON, "{took:?}");
    assert!(is_gone_soon(pid));
    assert_eq!(driver.left(), ["events", "lock", "logs", "record"]);
    assert!(driver.session.join("logs/oxirayd.log").exists());
    assert!(driver.session.join(format!("logs/worker-{pid}.out")).exists());
}

#[test]
fn a_signal_ends_the_session() {
    let mut driver = Driver::start(|_| {});
    driver.demand(1, 1, 1);
    let (_, pid) = lease(&mut driver);
    oxiray_sys::process::signal(driver.child.id(), 15);
    let (status, took) = driver.ended();
    assert!(status.success() && took < SOON, "{status} after {took:?}");
    assert!(is_gone_soon(pid) && !driver.session.join("node.sock").exists());
}

fn state(driver: &mut Driver, actor: &[u8], phase: ActorPhase) -> ActorState {
    driver.until(&format!("{phase:?} actor"), |body| match body {
        Body::ActorState(state) if state.actor == actor && state.phase() == phase => {
            Some(state.clone())
        }
        _ => None,
    })
}

fn create(driver: &Driver, number: u8, class_name: &str) -> Vec<u8> {
    let actor = vec![number; 16];
    driver.send(to_node::Body::CreateActor(CreateActor {
        actor: actor.clone(),
        class_name: class_name.into(),
        placement: shape(1),
        held: shape(0),
        ..CreateActor::default()
    }));
    actor
}

#[test]
fn actors_live_fail_and_die() {
    let mut driver = Driver::start(|_| {});
    let alive = create(&driver, 1, "live");
    let pid = state(&mut driver, &alive, ActorPhase::Alive).pid;
    let raising = create(&driver, 2, "raise");
    assert_eq!(state(&mut driver, &raising, ActorPhase::Dead).creation_error, b"bad");
    let exploding = create(&driver, 3, "explode");
    let reason = state(&mut driver, &exploding, ActorPhase::Dead).reason;
    assert!(reason.contains("exit code 7") && reason.contains("about to explode"), "{reason}");
    driver.send(to_node::Body::KillActor(Actor {
        actor: alive.clone(),
        no_restart: true,
        ..Actor::default()
    }));
    let reason = state(&mut driver, &alive, ActorPhase::Dead).reason;
    assert!(reason.starts_with("it was killed by ray.kill (it was process"), "{reason}");
    assert!(is_gone_soon(pid));
}

#[test]
fn a_hundred_actors_start_on_few_cores() {
    let mut driver = Driver::start(|_| {});
    let actors: Vec<_> = (0..100).map(|number| create(&driver, number, "live")).collect();
    for actor in &actors {
        state(&mut driver, actor, ActorPhase::Alive);
    }
}

#[test]
fn the_store_is_given_out_and_refuses_with_reasons() {
    let mut driver = Driver::start(|_| {});
    let allocate = |driver: &mut Driver, request, size| {
        driver.send(to_node::Body::Allocate(Allocate { request, size, owner: 1 }));
        driver.until("room", move |body| match body {
            Body::Allocated(answer) if answer.request == request => Some(answer.clone()),
            _ => None,
        })
    };
    let first = allocate(&mut driver, 1, 900 << 10);
    assert_eq!((first.offset, first.refused), (0, None));
    let refused = |answer: Allocated| answer.refused.expect("a refusal").text;
    // What is still being filled cannot be spilled.
    assert!(refused(allocate(&mut driver, 2, 900 << 10)).contains("the object store is full"));
    assert!(refused(allocate(&mut driver, 3, 2 << 20)).contains("larger than the whole"));
}

#[test]
fn strangers_and_other_versions_are_refused() {
    let mut driver = Driver::start(|config| config.session_dir = "/nowhere/at/all".into());
    let text = driver.until("refusal", |body| match body {
        Body::Stopped(text) => Some(text.text.clone()),
        _ => None,
    });
    assert!(text.contains("No such file"), "{text}");
    assert!(!driver.ended().0.success());

    let mut driver = Driver::start(|_| {});
    driver.send(to_node::Body::Connect(Peer { process: 99 }));
    driver.until("word of no such process", |body| match body {
        Body::ProcessDied(died) if died.process == 99 => Some(()),
        _ => None,
    });
}

#[test]
fn workers_that_cannot_start_are_the_users_to_know() {
    let mut driver = Driver::start(|config| config.python = "/bin/false".into());
    let text = driver.until("warning", |body| match body {
        Body::Warning(text) => Some(text.text.clone()),
        _ => None,
    });
    assert!(text.contains("Workers cannot be started"), "{text}");
}

#[test]
fn what_no_node_can_run_is_warned_about() {
    let mut driver = Driver::start(|_| {});
    driver.demand(2, 9, 1);
    // Once it has waited for a second.
    let text = driver.until("warning", |body| match body {
        Body::Warning(text) => Some(text.text.clone()),
        _ => None,
    });
    assert!(text.contains("it needs {CPU: 9}") && text.contains("largest has 2"), "{text}");
}
