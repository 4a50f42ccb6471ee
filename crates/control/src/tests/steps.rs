//! What may happen, drawn from numbers: one number is one step, so that a
//! history can be shrunk by leaving out numbers, and be as long as one likes.

use oxiray_ids::{ActorId, JobId, ProcessId};
use oxiray_wire::cluster::Job;
use oxiray_wire::control::{Amount, CreateActor, Shape, Strategy, UNIT};

use super::node::SimNode;
use super::world::{Crash, World};

/// Numbers out of a number.
pub(super) struct Draw(pub(super) u64);

impl Draw {
    /// By `splitmix64`.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

impl World {
    /// Lets happen what the number says.
    pub(super) fn step(&mut self, number: u64) {
        let mut draw = Draw(number);
        match draw.below(200) {
            0..=2 => self.add_node(),
            3..=12 => self.some_node(&mut draw, |world, index| world.connect(index)),
            13..=62 => {
                self.some_busy(&mut draw, |node| !node.to_control.is_empty(), Self::deliver_up)
            }
            63..=112 => {
                self.some_busy(&mut draw, |node| !node.from_control.is_empty(), Self::deliver_down);
            }
            113..=130 => {
                self.some_busy(&mut draw, |node| !node.to_nodes.is_empty(), Self::deliver_across);
            }
            131..=135 => self.spawn(&mut draw),
            136..=147 => self.create(&mut draw),
            148..=157 => self.watch(&mut draw),
            158..=161 => self.kill_actor(&mut draw),
            162..=164 => self.name(&mut draw),
            165..=176 => self.progress(&mut draw),
            177..=179 => self.some_process(&mut draw, |node, process, _| node.end(process)),
            180 => self.some_process(&mut draw, |node, _, draw| {
                node.put(draw.below(4) as u8, draw.below(256) as u8);
            }),
            181..=182 => self.job(&mut draw),
            183..=184 => {
                self.some_process(&mut draw, |node, _, draw| node.load(draw.below(5) as u64))
            }
            185..=190 => self.advance([1, 100, 500, 900][draw.below(4)] * 1_000_000),
            191..=194 => self.trouble(&mut draw),
            _ => self.control_trouble(&mut draw),
        }
    }

    fn some_node(&mut self, draw: &mut Draw, act: impl FnOnce(&mut Self, usize)) {
        if !self.nodes.is_empty() {
            let index = draw.below(self.nodes.len());
            act(self, index);
        }
    }

    fn some_busy(
        &mut self,
        draw: &mut Draw,
        is_busy: impl Fn(&SimNode) -> bool,
        act: impl FnOnce(&mut Self, usize) -> bool,
    ) {
        let busy = self.nodes.iter().enumerate().filter(|(_, node)| is_busy(node));
        let busy: Vec<usize> = busy.map(|(index, _)| index).collect();
        if !busy.is_empty() {
            act(self, busy[draw.below(busy.len())]);
        }
    }

    fn some_process(
        &mut self,
        draw: &mut Draw,
        act: impl FnOnce(&mut SimNode, ProcessId, &mut Draw),
    ) {
        let processes = self.processes();
        if !processes.is_empty() {
            let (index, process) = processes[draw.below(processes.len())];
            act(&mut self.nodes[index], process, draw);
        }
    }

    fn spawn(&mut self, draw: &mut Draw) {
        if self.processes().len() < self.size.processes {
            self.some_node(draw, |world, index| {
                if world.nodes[index].number != 0 {
                    world.nodes[index].spawn();
                }
            });
        }
    }

    /// An actor that there is, or one that a process may make later.
    fn some_actor(&mut self, draw: &mut Draw) -> Option<ActorId> {
        if !self.actors.is_empty() && !draw.one_in(4) {
            return Some(self.actors[draw.below(self.actors.len())]);
        }
        let processes = self.processes();
        let (_, creator) = *processes.get(draw.below(processes.len()))?;
        if self.actors.len() >= self.size.actors {
            return None;
        }
        self.counter += 1;
        let id = ActorId::new(JobId([1; 4]), creator, self.counter);
        self.actors.push(id);
        Some(id)
    }

    fn create(&mut self, draw: &mut Draw) {
        let Some(id) = self.some_actor(draw) else { return };
        let shape = self.shape(draw);
        let create = CreateActor {
            actor: id.0.to_vec(),
            class_name: "A".into(),
            placement: Some(shape),
            max_restarts: draw.below(4) as i64 - 1,
            detached: draw.one_in(4),
            ..CreateActor::default()
        };
        let creator = id.creator();
        let node = self.nodes.iter_mut().find(|node| node.processes.contains(&creator));
        if let Some(node) = node
            && !node.heard_dead.contains_key(&id)
        {
            node.create(creator, create);
        }
    }

    fn shape(&self, draw: &mut Draw) -> Shape {
        let amount = |name: &str, amount| vec![Amount { name: name.into(), amount: amount * UNIT }];
        let mut shape = Shape::default();
        match draw.below(10) {
            0..=3 => {}
            4..=7 => shape.resources = amount("CPU", 1),
            8 => shape.resources = amount("GPU", 1),
            _ => shape.resources = amount("CPU", 4),
        }
        if draw.one_in(6) && !self.nodes.is_empty() {
            let node = &self.nodes[draw.below(self.nodes.len())];
            let node = SimNode::node_id(node.id);
            shape.strategy = Some(Strategy { node, soft: draw.one_in(2), ..Strategy::default() });
        }
        shape
    }

    fn watch(&mut self, draw: &mut Draw) {
        let Some(id) = self.some_actor(draw) else { return };
        self.some_process(draw, |node, process, _| {
            if !node.heard_dead.contains_key(&id) {
                node.watch(process, id);
            }
        });
    }

    fn kill_actor(&mut self, draw: &mut Draw) {
        let Some(id) = self.some_actor(draw) else { return };
        self.some_process(draw, |node, process, draw| node.kill(process, id, draw.one_in(2)));
    }

    fn name(&mut self, draw: &mut Draw) {
        let Some(id) = self.some_actor(draw) else { return };
        self.counter += 1;
        let request = u64::from(self.counter);
        let creator = id.creator();
        let node = self.nodes.iter_mut().find(|node| node.processes.contains(&creator));
        if let Some(node) = node {
            match draw.one_in(4) {
                true => node.release_name(creator, id),
                false => node.name(creator, id, ["a", "b", "c"][draw.below(3)], request),
            }
        }
    }

    fn progress(&mut self, draw: &mut Draw) {
        let hosted: Vec<(usize, ActorId)> = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| !node.frozen)
            .flat_map(|(index, node)| node.hosted.keys().map(move |id| (index, *id)))
            .collect();
        if !hosted.is_empty() {
            let (index, id) = hosted[draw.below(hosted.len())];
            self.nodes[index].progress(id, !draw.one_in(4));
        }
    }

    fn job(&mut self, draw: &mut Draw) {
        let now = self.now.wall_ms;
        self.some_process(draw, |node, process, draw| {
            let id = vec![process.node() as u8, process.number() as u8, 0, 0];
            let ended_ms = if draw.one_in(3) { now } else { 0 };
            node.job(Job { id, driver: process.0, ended_ms, ..Job::default() });
        });
    }

    fn trouble(&mut self, draw: &mut Draw) {
        let kind = draw.below(4);
        self.some_node(draw, |world, index| match kind {
            0 => world.remove_node(index),
            1 => world.nodes[index].frozen = true,
            2 => world.nodes[index].frozen = false,
            _ => {
                if world.nodes[index].peer.is_some() && world.nodes[index].number != 0 {
                    world.nodes[index].leave();
                }
            }
        });
    }

    fn control_trouble(&mut self, draw: &mut Draw) {
        match draw.below(12) {
            0 => self.kill_control(),
            3 => self.stall_control(),
            1 => self.crash = Some(Crash::BeforeWriting),
            2 => self.crash = Some(Crash::BeforeSending),
            _ => self.start_control(),
        }
    }
}
