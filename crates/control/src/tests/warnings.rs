//! Who hears that an actor finds no node.

use oxiray_wire::cluster::{Introduce, OfProcess, to_control};
use oxiray_wire::control::{JobConfig, from_node, to_node};

use super::bench::{Bench, MS, actor, creation, needs, process};
use super::world::Asked;

fn warnings(asked: &Asked) -> Vec<(u64, String)> {
    use oxiray_wire::cluster::from_control::Body;
    let sent = asked.sent.iter().filter_map(|(_, body)| match body {
        Body::ForProcess(said) => match said.message.as_ref()?.body.as_ref()? {
            from_node::Body::Warning(text) => Some((said.process, text.text.clone())),
            _ => None,
        },
        _ => None,
    });
    sent.collect()
}

/// A worker of a driver's job makes actors that need a GPU.
fn make(bench: &mut Bench, counter: u32) {
    let (driver, worker) = (process(1, 1), process(1, 2));
    let mut create = creation(actor(worker, counter), 0);
    create.placement = needs("GPU", 1);
    let config = Some(JobConfig { driver: driver.0, ..JobConfig::default() });
    let about = Some(Introduce { process: worker.0, config, ..Introduce::default() });
    let message = Some(to_node::Body::CreateActor(create).into());
    let said = OfProcess { process: worker.0, message, about, ..OfProcess::default() };
    bench.say(1, to_control::Body::OfProcess(said));
}

#[test]
fn a_program_hears_once_that_its_actors_find_no_node() {
    let mut bench = Bench::new();
    bench.join(1);
    make(&mut bench, 1);
    make(&mut bench, 2);
    assert!(warnings(&bench.tick(900)).is_empty(), "a node may be about to join");
    assert!(bench.control.next_wakeup().is_some_and(|at| at <= bench.now.ns + 100 * MS));
    let asked = bench.tick(100);
    let [(driver, text)] = &warnings(&asked)[..] else { panic!("{:?}", asked.sent) };
    assert_eq!(*driver, process(1, 1).0, "not the worker that made it");
    assert!(text.contains("no node has a GPU"), "{text}");
    make(&mut bench, 3);
    assert!(warnings(&bench.tick(2000)).is_empty(), "it knows");
}

#[test]
fn one_that_found_a_node_or_died_is_not_warned_of() {
    let mut bench = Bench::new();
    bench.join(1);
    make(&mut bench, 1);
    bench.kill(process(1, 1), actor(process(1, 2), 1), true);
    assert!(warnings(&bench.tick(2000)).is_empty());
}
