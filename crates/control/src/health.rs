//! When a member that says nothing is suspected, and when it is given up. A process that ends is
//! seen at once: this is about cables, and about what stands still.
//!
//! - **H-1** a member of which nothing was heard for a period is suspect: nothing new goes there that
//!   need not, and what it has waits. It is suspect no longer with the first word of it.
//! - **H-2** it is given up only after `failure_threshold` questions in a row, a period apart, of
//!   which the last had all of its `timeout`; and not within the initial delay.
//! - **H-3** that its connection ends is its end only if something else was heard of it just before.
//!   After a silence it may be what is left of a connection that broke, or that it gave up itself.
//! - **H-5** a member's lease is shorter than it takes to give it up, and begins earlier: when it said
//!   what was heard of it last. It is told of that often enough that it never ends while all is well.

use oxiray_scheduler::NodeNumber;
use oxiray_wire::cluster::{HealthConfig, Load, Loads, from_control};

use crate::control::Control;
use crate::event::{Now, Outbox};

pub(crate) const MILLISECOND: u64 = 1_000_000;
/// Members are asked at least this often, however long a period is.
const ASK_AT_LEAST_EVERY: u64 = 500 * MILLISECOND;
/// The end of a connection that was silent for longer says nothing of who was there (H-3).
const SILENT_BEFORE_ITS_END: u64 = 3_000 * MILLISECOND;
/// Nobody means more than this: a day.
const MOST_MS: u64 = 86_400_000;
const MOST_FAILURES: u64 = 1_000;

/// `22 s`, `2.5 s`.
pub(crate) fn show_seconds(nanoseconds: u64) -> String {
    format!("{} s", (nanoseconds / MILLISECOND) as f64 / 1000.0)
}

/// How patient the control service is, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Health {
    initial_delay: u64,
    period: u64,
    timeout: u64,
    failures: u64,
}

impl Default for Health {
    /// Ray's.
    fn default() -> Self {
        let ms = |count: u64| count * MILLISECOND;
        Self { initial_delay: ms(5_000), period: ms(3_000), timeout: ms(10_000), failures: 5 }
    }
}

impl Health {
    /// As somebody wants it, or a sentence on why that cannot be.
    pub fn new(wanted: &HealthConfig) -> Result<Self, String> {
        let HealthConfig { initial_delay_ms, period_ms, timeout_ms, failure_threshold } = *wanted;
        let numbers = [
            ("health_check_initial_delay_ms", initial_delay_ms, 0, MOST_MS),
            ("health_check_period_ms", period_ms, 1, MOST_MS),
            ("health_check_timeout_ms", timeout_ms, 1, MOST_MS),
            ("health_check_failure_threshold", failure_threshold, 1, MOST_FAILURES),
        ];
        for (name, number, least, most) in numbers {
            if !(least..=most).contains(&number) {
                return Err(format!("{name} must be from {least} to {most}, not {number}"));
            }
        }
        let health = Self {
            initial_delay: initial_delay_ms * MILLISECOND,
            period: period_ms * MILLISECOND,
            timeout: timeout_ms * MILLISECOND,
            failures: failure_threshold,
        };
        match health.given_up_after() > health.period {
            true => Ok(health),
            false => Err(format!(
                "health_check_timeout_ms={timeout_ms} and health_check_failure_threshold=\
                 {failure_threshold} contradict health_check_period_ms={period_ms}: a node would be \
                 given up before it is suspected. Raise one of the first two, or lower the period"
            )),
        }
    }

    /// Nothing was heard for so long: suspect (H-1).
    pub fn suspected_after(&self) -> u64 {
        self.period
    }

    /// Nothing was heard for so long: given up (H-2).
    pub fn given_up_after(&self) -> u64 {
        (self.failures - 1) * self.period + self.timeout
    }

    /// Nothing was heard for so long before a connection ended: the member may live (H-3).
    pub(crate) fn doubted_after(&self) -> u64 {
        self.period.min(SILENT_BEFORE_ITS_END)
    }

    /// How often members are asked.
    pub(crate) fn ask_every(&self) -> u64 {
        (self.period / 2).min(self.given_up_after() / 8).clamp(1, ASK_AT_LEAST_EVERY)
    }

    /// For how long a member may go on that is not heard, with what would be begun elsewhere (H-5).
    /// The rest is for what it does then, and for clocks that do not go alike.
    pub fn lease(&self) -> u64 {
        self.given_up_after() - self.period.min(self.given_up_after() / 4)
    }

    /// How long a new member is not judged.
    pub(crate) fn initial_delay(&self) -> u64 {
        self.initial_delay
    }

    /// The control service was away itself when it comes this late to ask others.
    pub(crate) fn absence(&self) -> u64 {
        (self.given_up_after() / 2).min(3 * ASK_AT_LEAST_EVERY)
    }
}

impl Control {
    /// What a node is told that becomes a member; a control service that asks nobody gives nobody up.
    pub(crate) fn lease_ms(&self) -> u64 {
        if self.asks_members { self.health.lease() / MILLISECOND } else { 0 }
    }

    /// Says how patient to be, from now on.
    pub fn set_health(&mut self, health: Health) {
        self.health = health;
        self.next_beat = self.next_beat.min(self.now.ns + health.ask_every());
    }

    /// Those of which nothing was heard are suspect from now on (H-1).
    pub(crate) fn suspect(&mut self, now: Now, out: &mut impl Outbox) {
        let limit = self.health.suspected_after();
        let is_new = |member: &crate::members::Member| {
            !member.suspect && now.ns.saturating_sub(member.heard_at) >= limit
        };
        let new: Vec<u32> =
            self.members.iter().filter(|(_, m)| is_new(m)).map(|(number, _)| *number).collect();
        for number in new {
            out.note(format!("node {number} is suspect: nothing is heard of it"));
            self.set_suspect(number, true, out);
            self.give_up_attempts_at(number, out);
        }
    }

    /// A member is suspect, or is no longer.
    pub(crate) fn set_suspect(&mut self, number: u32, suspect: bool, out: &mut impl Outbox) {
        let Some(member) = self.members.get_mut(&number) else {
            return;
        };
        member.suspect = suspect;
        let info = &member.info;
        self.room.set_draining(NodeNumber(number), suspect);
        let load = Load {
            node: number,
            available: info.available.clone(),
            waiting: info.waiting,
            store_used: info.store_used,
            waiting_for: info.waiting_for.clone(),
            has_worked: info.has_worked,
            suspect,
        };
        let others = from_control::Body::Loads(Loads { loads: vec![load] });
        self.broadcast(Some(number), others, out);
        if !suspect {
            out.note(format!("node {number} is heard again"));
            self.place_waiting(out);
            self.place_groups(out);
        }
    }
}
