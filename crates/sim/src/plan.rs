//! What a run is made of.

use crate::broken::Broken;
use crate::random::Random;

/// Nanoseconds in a microsecond,
pub const MICROSECOND: u64 = 1_000;
/// in a millisecond,
pub const MILLISECOND: u64 = 1_000_000;
/// and in a second.
pub const SECOND: u64 = 1_000_000_000;

/// What programs choose from. Times are virtual.
#[derive(Clone, Copy, Debug)]
pub struct Menu {
    /// How long a task runs: between these.
    pub task_time: (u64, u64),
    /// Of all tasks, one in so many asks for two CPUs, to be spread, or for a
    /// label, each; 0: none.
    pub special_once_in: u64,
    /// One in so many raises; 0: none.
    pub raise_once_in: u64,
    /// One value in so many is large; 0: none.
    pub stored_once_in: u64,
    /// Actors are made.
    pub actors: bool,
    /// Tasks are tried for ever and submit none of their own, and programs live: whatever dies,
    /// every value is had in the end.
    pub sturdy: bool,
}

/// The sizes of a run, and what goes wrong in it. Times are virtual.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The same seed gives the same run.
    pub seed: u64,
    /// Nodes at any time: one that dies is followed by another.
    pub nodes: usize,
    /// CPUs of each.
    pub cpus: u64,
    /// Programs. Their nodes do not die.
    pub drivers: usize,
    /// Programs that end in the middle of their work, one to a node.
    pub mortal_drivers: usize,
    /// Plain tasks of all programs that live.
    pub tasks: usize,
    /// Named actors of each program.
    pub actors: usize,
    /// Steps of each program: whatever programs do.
    pub steps: u8,
    /// What there is to do.
    pub menu: Menu,
    /// Nodes that die, at random times within `trouble`.
    pub node_deaths: usize,
    /// Nodes that are drained, likewise.
    pub drains: usize,
    /// Connections between two nodes that break, though both live.
    pub broken_links: usize,
    /// Nodes that are cut off from the control service for a while, in one direction or both.
    pub cuts: usize,
    /// Pairs of nodes that do not reach each other for a while, though both reach everybody else.
    pub pair_cuts: usize,
    /// How often the control service is started again.
    pub control_restarts: usize,
    /// Actors that are killed.
    pub actor_kills: usize,
    /// Placement groups that programs make, within `trouble`.
    pub groups: usize,
    /// Troubles happen before this time.
    pub trouble: u64,
    /// A worker crashes once in so many tasks; 0: never.
    pub crash_once_in: u64,
    /// A worker that is to start fails once in so many times; 0: never.
    pub start_fails_once_in: u64,
    /// No task waits while a node that would do is idle for longer than this.
    pub patience: u64,
    /// Nodes, owners and the control service are validated after one event in so many; in debug
    /// builds nodes do it themselves.
    pub validate_once_in: u64,
    /// What is broken on purpose.
    pub broken: Option<Broken>,
}

impl Plan {
    /// A handful of nodes and whatever programs do, with the troubles that the seed chooses.
    pub fn mixed(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x5eed);
        let mut some = |most: u64| match random.once_in(2) {
            true => random.between(1, most + 1) as usize,
            false => 0,
        };
        let (node_deaths, broken_links, control_restarts) = (some(3), some(2), some(1));
        let (actor_kills, mortal_drivers, crashes) = (some(2), some(1), some(1) > 0);
        let drains = some(3);
        let drivers = random.between(1, 3) as usize;
        let sturdy = random.once_in(4);
        let menu = Menu {
            task_time: (100 * MICROSECOND, 10 * MILLISECOND),
            special_once_in: 8,
            raise_once_in: 25,
            stored_once_in: 3,
            actors: !sturdy,
            sturdy,
        };
        Self {
            seed,
            nodes: drivers + mortal_drivers + random.between(1, 5) as usize,
            cpus: random.between(2, 4),
            drivers,
            mortal_drivers,
            tasks: 0,
            actors: if sturdy { 0 } else { random.place(3) },
            steps: random.between(5, 20) as u8,
            menu,
            node_deaths,
            drains,
            broken_links,
            cuts: 0,
            pair_cuts: 0,
            control_restarts,
            actor_kills,
            groups: 0,
            trouble: random.between(60, 400) * MILLISECOND,
            crash_once_in: if crashes { 15 } else { 0 },
            start_fails_once_in: 20,
            patience: 3 * SECOND,
            validate_once_in: 1,
            broken: None,
        }
    }

    /// A small cluster in trouble, with many plain tasks.
    pub fn small(seed: u64) -> Self {
        Self {
            seed,
            nodes: 20,
            cpus: 2,
            drivers: 3,
            mortal_drivers: 2,
            tasks: 5_000,
            actors: 6,
            steps: 0,
            menu: Menu {
                task_time: (MILLISECOND, 40 * MILLISECOND),
                special_once_in: 4,
                raise_once_in: 0,
                stored_once_in: 0,
                actors: true,
                sturdy: false,
            },
            node_deaths: 8,
            drains: 4,
            broken_links: 6,
            cuts: 0,
            pair_cuts: 0,
            control_restarts: 1,
            actor_kills: 2,
            groups: 0,
            trouble: 2 * SECOND,
            crash_once_in: 100,
            start_fails_once_in: 20,
            patience: 3 * SECOND,
            validate_once_in: 10,
            broken: None,
        }
    }

    /// A thousand nodes, a million tasks.
    pub fn large(seed: u64) -> Self {
        let small = Self::small(seed);
        Self {
            nodes: 1_000,
            drivers: 20,
            mortal_drivers: 10,
            tasks: 1_000_000,
            actors: 50,
            menu: Menu { task_time: (5 * MILLISECOND, 40 * MILLISECOND), ..small.menu },
            node_deaths: 50,
            drains: 20,
            broken_links: 50,
            trouble: 10 * SECOND,
            crash_once_in: 1_000,
            validate_once_in: 1_000,
            ..small
        }
    }

    /// Programs whose actors live for long, among nodes that are cut off from the control service for
    /// less time than it takes to give them up, or for more.
    pub fn cut_off(seed: u64) -> Self {
        let mixed = Self::mixed(seed);
        Self {
            actors: 4,
            menu: Menu {
                task_time: (MILLISECOND, 8 * SECOND),
                actors: true,
                sturdy: false,
                ..mixed.menu
            },
            cuts: 1 + (seed % 4) as usize,
            drains: 0,
            trouble: 40 * SECOND,
            // Nothing new goes to a node that is cut off, be it idle.
            patience: 120 * SECOND,
            ..mixed
        }
    }

    /// Programs among nodes that do not reach each other, pair by pair, and nothing else goes wrong:
    /// there is no excuse for any value that is not had, where a third node leads from one to the
    /// other.
    pub fn apart(seed: u64) -> Self {
        let mixed = Self::mixed(seed);
        Self {
            nodes: mixed.nodes.max(3),
            actors: if mixed.menu.sturdy { 0 } else { 4 },
            mortal_drivers: 0,
            menu: Menu { task_time: (MILLISECOND, SECOND), ..mixed.menu },
            pair_cuts: 1 + (seed % 6) as usize,
            node_deaths: 0,
            drains: 0,
            broken_links: 0,
            control_restarts: 0,
            actor_kills: 0,
            crash_once_in: 0,
            start_fails_once_in: 0,
            trouble: 10 * SECOND,
            // What a node was asked for before it was out of reach waits until that is known.
            patience: 20 * SECOND,
            ..mixed
        }
    }

    /// Placement groups among nodes that die and come, and tasks beside them.
    pub fn gangs(seed: u64) -> Self {
        let small = Self::small(seed);
        Self {
            tasks: 200,
            actors: 0,
            menu: Menu { actors: false, sturdy: true, ..small.menu },
            node_deaths: 10,
            drains: 4,
            broken_links: 0,
            groups: 60,
            crash_once_in: 0,
            ..small
        }
    }

    /// A thousand of them among a hundred nodes.
    pub fn thousand_gangs(seed: u64) -> Self {
        Self {
            nodes: 100,
            cpus: 4,
            node_deaths: 60,
            control_restarts: 2,
            groups: 1_000,
            trouble: 6 * SECOND,
            validate_once_in: 100,
            ..Self::gangs(seed)
        }
    }

    /// What can be made smaller, by name.
    pub(crate) fn numbers(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("steps", u64::from(self.steps)),
            ("tasks", self.tasks as u64),
            ("actors", self.actors as u64),
            ("mortal_drivers", self.mortal_drivers as u64),
            ("drivers", self.drivers as u64),
            ("node_deaths", self.node_deaths as u64),
            ("drains", self.drains as u64),
            ("broken_links", self.broken_links as u64),
            ("cuts", self.cuts as u64),
            ("pair_cuts", self.pair_cuts as u64),
            ("control_restarts", self.control_restarts as u64),
            ("actor_kills", self.actor_kills as u64),
            ("groups", self.groups as u64),
            ("crash_once_in", self.crash_once_in),
            ("nodes", self.nodes as u64),
        ]
    }

    /// The least that such a number can be.
    pub(crate) fn least(&self, name: &str) -> u64 {
        match name {
            "drivers" => 1,
            "nodes" => (self.drivers + self.mortal_drivers + 1) as u64,
            _ => 0,
        }
    }

    /// This plan with other numbers: `steps=3,nodes=2`.
    pub fn with(&self, changes: &str) -> Self {
        let mut plan = self.clone();
        for change in changes.split(',').filter(|change| !change.is_empty()) {
            let (name, value) = change.split_once('=').expect("name=number");
            let value: u64 = value.parse().expect("name=number");
            match name {
                "steps" => plan.steps = value as u8,
                "tasks" => plan.tasks = value as usize,
                "actors" => plan.actors = value as usize,
                "groups" => plan.groups = value as usize,
                "mortal_drivers" => plan.mortal_drivers = value as usize,
                "drivers" => plan.drivers = value as usize,
                "node_deaths" => plan.node_deaths = value as usize,
                "drains" => plan.drains = value as usize,
                "broken_links" => plan.broken_links = value as usize,
                "cuts" => plan.cuts = value as usize,
                "pair_cuts" => plan.pair_cuts = value as usize,
                "control_restarts" => plan.control_restarts = value as usize,
                "actor_kills" => plan.actor_kills = value as usize,
                "crash_once_in" => plan.crash_once_in = value,
                "nodes" => plan.nodes = value as usize,
                _ => panic!("a plan has no {name}"),
            }
        }
        plan
    }
}
