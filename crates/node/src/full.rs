//! What lacks only a worker, and will get none: the node has as many processes as it may have, or
//! none can be started. It fails with that reason, where it would wait for ever.
//!
//! - **W-1** Nothing fails while a worker may come free: while one is idle or about to come, or a
//!   lease runs that does not itself wait for others.

use std::collections::{BTreeMap, BTreeSet};

use oxiray_ids::ActorId;
use oxiray_wire::control::{Unschedulable, from_node};
use oxiray_wire::frame::FailureCode;

use crate::event::Outbox;
use crate::node::Node;
use crate::schedule::{Claim, ShapeId};

const MILLISECOND: u64 = 1_000_000;
/// How long it must have been so: somebody may be about to end.
const PATIENCE: u64 = 1_000 * MILLISECOND;

impl Node {
    /// Why no worker can come for whoever lacks one, if that is so (W-1), and when that showed last.
    fn no_worker_can_come(&self, now: u64) -> Option<(String, u64)> {
        let runs = self.leases.values().any(|lease| !lease.blocked);
        if runs || !self.pool.idle.is_empty() || self.pool.is_any_starting() {
            return None;
        }
        if self.bells.len() >= self.setup.max_processes {
            // The gateway is none that anybody would count.
            let most = self.setup.max_processes - 1;
            let why = &self.setup.limited_by;
            let reason = format!(
                "this node has {most} processes, as many as it can have{why}, and none of them \
                 will come free"
            );
            return Some((reason, now));
        }
        let (why, at) = self.pool.hopeless()?;
        Some((format!("workers cannot be started: {why}"), at))
    }

    /// After a pass: `claims` have everything but a worker.
    pub(crate) fn fail_without_workers(
        &mut self,
        claims: &[Claim],
        now: u64,
        out: &mut impl Outbox,
    ) {
        let reason = if claims.is_empty() { None } else { self.no_worker_can_come(now) };
        let Some((reason, showed)) = reason else {
            self.pool.without_since = None;
            return;
        };
        let since = *self.pool.without_since.get_or_insert(now);
        // What was so before anybody waited may be otherwise: the next start tells.
        if now < since + PATIENCE || showed < since {
            return;
        }
        // Unless more wait than a pass looks at, those were all: whoever comes next waits anew.
        if claims.len() < self.setup.max_starting {
            self.pool.without_since = None;
        }
        let mut by_shape: BTreeMap<ShapeId, usize> = BTreeMap::new();
        let mut demands = BTreeSet::new();
        for claim in claims {
            match *claim {
                Claim::Actor(shape) => *by_shape.entry(shape).or_default() += 1,
                Claim::Demand(process, key) => _ = demands.insert((process, key)),
            }
        }
        for (process, key) in demands {
            self.abandon(process, key, out);
            let failure = FailureCode::Unschedulable as u32;
            let reason = format!("no worker for it can be had: {reason}");
            let failed = Unschedulable { shape_key: key, reason, failure };
            out.send(process, from_node::Body::Unschedulable(failed));
        }
        for (shape, count) in by_shape {
            let waiting = self.schedule.waiting_actors.range((shape, 0)..=(shape, u64::MAX));
            let actors: Vec<ActorId> = waiting.take(count).map(|(_, &actor)| actor).collect();
            for actor in actors {
                let reason = format!("no worker for it could be had: {reason}");
                self.bury(actor, reason, Vec::new(), out);
            }
        }
    }

    /// When those without a worker have waited long enough.
    pub(crate) fn next_without_worker(&self) -> Option<u64> {
        let (_, showed) = self.pool.hopeless().unwrap_or(("", u64::MAX));
        self.pool.without_since.filter(|since| showed >= *since).map(|since| since + PATIENCE)
    }
}
