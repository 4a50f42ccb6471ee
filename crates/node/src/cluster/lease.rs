//! How long this node may have actors that would be started again elsewhere if it were given up.
//!
//! The control service starts them again when it has heard nothing of the node for long enough. So the
//! node must know a moment at which it was heard. Each of its answers carries a *mark*, the time by its
//! own clock, and each question names the last mark that has come: from that time on the node has the
//! length of a lease, which the control service has said. What it waits for itself is longer, and
//! begins later, when the mark comes. No two clocks need to agree, but both must go on alike.
//!
//! - **V-1** the lease runs from a time at which the node said something that has been heard.
//! - **V-2** when it is over, the workers of actors that may be started again elsewhere are killed, and
//!   no actor is given a worker until there is another lease.
//! - **V-3** what is said over a connection on which the lease ended is not heard any more: it may be
//!   old. The node joins again, and is told what it is.

use oxiray_ids::ProcessId;

use crate::event::Outbox;
use crate::node::Node;

const MILLISECOND: u64 = 1_000_000;

/// What was promised to this node.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// 0: there is none, and none is needed.
    length: u64,
    from: u64,
    is_over: bool,
    /// When it last asked to be a member.
    pub(super) asked_at: u64,
}

impl Lease {
    /// None yet: the node asked to be a member then.
    pub(super) fn asked(asked_at: u64) -> Self {
        Self { asked_at, ..Self::default() }
    }

    fn until(&self) -> Option<u64> {
        (self.length > 0).then_some(self.from.saturating_add(self.length))
    }

    /// When it ends, if it has not.
    pub(super) fn ends_at(&self) -> Option<u64> {
        self.until().filter(|_| !self.is_over)
    }
}

impl Node {
    /// When this node's lease ends; none: it needs none.
    pub fn lease_until(&self) -> Option<u64> {
        self.uplink.lease.until()
    }

    /// Whether the lease is over, and no actor may begin here (V-2).
    pub fn is_fenced(&self) -> bool {
        self.uplink.lease.is_over
    }

    /// The node is a member since it asked to be (V-1).
    pub(super) fn begin_lease(&mut self, length_ms: u64, now: u64) {
        let lease = &mut self.uplink.lease;
        lease.length = length_ms.saturating_mul(MILLISECOND);
        lease.from = 0;
        self.renew_lease(self.uplink.lease.asked_at, now);
    }

    /// What was said then has been heard (V-1).
    pub(super) fn renew_lease(&mut self, mark: u64, now: u64) {
        let lease = &mut self.uplink.lease;
        // Nobody can have heard what was not said yet.
        lease.from = lease.from.max(mark.min(now));
        lease.is_over &= lease.until().is_some_and(|until| now >= until);
    }

    /// Ends what would be begun elsewhere, if the lease is over (V-2, V-3).
    pub(crate) fn mind_lease(&mut self, now: u64, out: &mut impl Outbox) {
        let lease = &mut self.uplink.lease;
        if lease.ends_at().is_none_or(|end| now < end) {
            return;
        }
        lease.is_over = true;
        let seconds = lease.length / (1000 * MILLISECOND);
        let why = format!(
            "the control service may have started it elsewhere: it has not been heard for {seconds} s"
        );
        self.distrust_uplink(now);
        let movable = self.actors.values().filter(|actor| actor.is_movable);
        let workers: Vec<ProcessId> = movable.filter_map(|actor| actor.worker()).collect();
        for worker in workers {
            self.end_process(worker, why.clone(), out);
        }
    }
}
