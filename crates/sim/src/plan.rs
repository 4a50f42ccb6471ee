//! What a run is made of.

/// Nanoseconds in a microsecond,
pub const MICROSECOND: u64 = 1_000;
/// in a millisecond,
pub const MILLISECOND: u64 = 1_000_000;
/// and in a second.
pub const SECOND: u64 = 1_000_000_000;

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
    /// Tasks of all programs that live.
    pub tasks: usize,
    /// How long a task runs: between these.
    pub task_time: (u64, u64),
    /// Actors of each program.
    pub actors: usize,
    /// Nodes that die, at random times within `trouble`.
    pub node_deaths: usize,
    /// Connections between two nodes that break, though both live.
    pub broken_links: usize,
    /// How often the control service is started again.
    pub control_restarts: usize,
    /// Troubles happen before this time.
    pub trouble: u64,
    /// A worker crashes once in so many tasks; 0: never.
    pub crash_once_in: u64,
    /// A worker that is to start fails once in so many times; 0: never.
    pub start_fails_once_in: u64,
    /// Of all tasks, one in so many asks for two CPUs, to be spread, or for a
    /// label, each; 0: none.
    pub special_once_in: u64,
    /// No task waits while a node that would do is idle for longer than this.
    pub patience: u64,
    /// `Node::validate` after one event in so many; in debug builds nodes do it themselves.
    pub validate_once_in: u64,
}

impl Plan {
    /// A small cluster in trouble.
    pub fn small(seed: u64) -> Self {
        Self {
            seed,
            nodes: 20,
            cpus: 2,
            drivers: 3,
            mortal_drivers: 2,
            tasks: 5_000,
            task_time: (MILLISECOND, 40 * MILLISECOND),
            actors: 6,
            node_deaths: 8,
            broken_links: 6,
            control_restarts: 1,
            trouble: 2 * SECOND,
            crash_once_in: 100,
            start_fails_once_in: 20,
            special_once_in: 4,
            patience: 3 * SECOND,
            validate_once_in: 1,
        }
    }

    /// A thousand nodes, a million tasks.
    pub fn large(seed: u64) -> Self {
        Self {
            nodes: 1_000,
            drivers: 20,
            mortal_drivers: 10,
            tasks: 1_000_000,
            task_time: (5 * MILLISECOND, 40 * MILLISECOND),
            actors: 50,
            node_deaths: 50,
            broken_links: 50,
            control_restarts: 1,
            trouble: 10 * SECOND,
            crash_once_in: 1_000,
            ..Self::small(seed)
        }
    }
}
