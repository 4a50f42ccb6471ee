//! Which node a task or an actor goes to.
//!
//! Pure: the same cluster and request give the same choice. Where Ray draws
//! lots, the caller's [`Request::turn`] decides.
//!
//! Invariants, which the tests cite. A node is *allowed* when it is live, not
//! draining, and matches all hard selectors; one that is insisted on may drain.
//!
//! - **P-1 (sound)** [`Choice::Now`] names an allowed node that fits now.
//! - **P-2 (complete)** when an allowed node fits now the choice is
//!   [`Choice::Now`], unless affinity holds it to a node that does not.
//! - **P-3 (hard is hard)** no choice names a node that hard affinity or a hard
//!   selector excludes.
//! - **P-4 (waiting makes sense)** [`Choice::Queue`] names an allowed node that
//!   can ever fit; [`Choice::Infeasible`] means that there is none.
//! - **P-5 (spread is even)** over equal nodes, spreading deals within one.
//! - **P-6 (fallbacks in turn)** a fallback is followed only where no node of those before it has
//!   room, and waited for only where none of theirs can ever have it.

mod search;

use oxiray_ids::NodeId;
use oxiray_wire::control::Shape;

use crate::cluster::{Cluster, Needs, NodeNumber, Room, place};
use crate::labels::Selector;
use crate::why;
use search::Search;

/// Of how many nodes one is among the best, as Ray's `scheduler_top_k_fraction`.
/// Several schedulers with equal beliefs do not all rush to one node.
const ONE_BEST_IN: u64 = 5;

/// How to choose a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Strategy {
    /// Pack nodes up to half, here first; then the least utilised.
    #[default]
    Default,
    /// Deal evenly.
    Spread,
    /// One node.
    Node(Affinity),
    /// By labels, then as [`Strategy::Default`].
    Labels {
        /// All must match.
        hard: Vec<Selector>,
        /// Nodes that all of these match too go first.
        soft: Vec<Selector>,
    },
}

/// Which node, and how strictly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Affinity {
    /// The node.
    pub node: NodeId,
    /// Elsewhere by default when the node is gone, drains or can never fit.
    pub soft: bool,
    /// When soft: elsewhere, too, when the node has no room now.
    pub spill_on_unavailable: bool,
    /// Fail rather than wait when the node has no room now.
    pub fail_on_unavailable: bool,
}

/// What a choice is made for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What it needs.
    pub shape: &'a Shape,
    /// How to choose.
    pub strategy: &'a Strategy,
    /// Ray's `label_selector`: hard, whatever the strategy.
    pub selectors: &'a [Selector],
    /// Instead of `selectors`, in this order, where no node of those has room.
    pub fallbacks: &'a [Vec<Selector>],
    /// Who asks. May be nobody's number.
    pub local: NodeNumber,
    /// The node that has most of the large arguments.
    pub prefer: Option<NodeNumber>,
    /// Decides among equals. Counts the choices made with one strategy and shape.
    pub turn: u64,
}

/// Where to go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// To this node, which has room.
    Now(NodeNumber),
    /// To wait at this node: nobody has room.
    Queue(NodeNumber),
    /// Nowhere yet: no node can ever. Tell the user; wait for nodes to join.
    Infeasible,
    /// Nowhere: it must fail, for this reason.
    Unschedulable(String),
}

/// Chooses a node; see the module documentation.
pub fn choose(cluster: &Cluster, request: &Request) -> Choice {
    let mut best = choose_without_fallback(cluster, request);
    for selectors in request.fallbacks {
        if matches!(best, Choice::Now(_)) {
            break;
        }
        let request = Request { selectors, ..*request };
        match (&best, choose_without_fallback(cluster, &request)) {
            (_, now @ Choice::Now(_)) => best = now,
            (Choice::Infeasible | Choice::Unschedulable(_), queue @ Choice::Queue(_)) => {
                best = queue;
            }
            _ => {}
        }
    }
    best
}

fn choose_without_fallback(cluster: &Cluster, request: &Request) -> Choice {
    let needs = cluster.needs(request.shape);
    let choosing = Choosing { cluster, request, needs: &needs };
    let allowed = allowed(cluster, request);
    match request.strategy {
        Strategy::Default => choosing.by_default(allowed.as_deref()),
        Strategy::Spread => choosing.spread(allowed.as_deref()),
        Strategy::Node(affinity) => choosing.by_affinity(affinity, allowed.as_deref()),
        Strategy::Labels { soft, .. } => choosing.by_labels(soft, allowed.as_deref()),
    }
}

/// The nodes that the hard selectors match; `None` when there are no selectors.
fn allowed(cluster: &Cluster, request: &Request) -> Option<Vec<u64>> {
    let hard = hard_of(request.strategy);
    if request.selectors.is_empty() && hard.is_empty() {
        return None;
    }
    let mut allowed = cluster.matching(request.selectors);
    cluster.narrow(&mut allowed, hard);
    Some(allowed)
}

/// The hard selectors within a strategy.
pub(crate) fn hard_of(strategy: &Strategy) -> &[Selector] {
    match strategy {
        Strategy::Labels { hard, .. } => hard,
        _ => &[],
    }
}

struct Choosing<'a> {
    cluster: &'a Cluster,
    request: &'a Request<'a>,
    needs: &'a Needs,
}

impl<'a> Choosing<'a> {
    fn search(&self, allowed: Option<&'a [u64]>, room: Room) -> Search<'a> {
        Search { cluster: self.cluster, needs: self.needs, allowed, room, without_gpus: false }
    }

    fn by_default(&self, allowed: Option<&'a [u64]>) -> Choice {
        let now = self.now(allowed).map(Choice::Now);
        let queue = || self.queue(allowed).map(Choice::Queue);
        now.or_else(queue).unwrap_or(Choice::Infeasible)
    }

    /// Where there is room: at the arguments, then by the hybrid policy. Nodes
    /// with GPUs are kept for those that need GPUs while another has room.
    fn now(&self, allowed: Option<&'a [u64]>) -> Option<NodeNumber> {
        let all = self.search(allowed, Room::Now);
        if let Some(prefer) = self.request.prefer.filter(|&prefer| all.find(prefer).is_some()) {
            return Some(prefer);
        }
        let k = (self.cluster.len() as u64 / ONE_BEST_IN).max(1);
        let hybrid = |search: Search| search.hybrid(self.request.local, k, self.request.turn);
        if self.needs.gpu || !self.cluster.has_gpus() {
            return hybrid(all);
        }
        hybrid(Search { without_gpus: true, ..all }).or_else(|| hybrid(all))
    }

    /// Where to wait: here, else where the fewest wait.
    fn queue(&self, allowed: Option<&'a [u64]>) -> Option<NodeNumber> {
        let ever = self.search(allowed, Room::Ever);
        if ever.find(self.request.local).is_some() {
            return Some(self.request.local);
        }
        ever.least(|block| &block.waiting, self.request.turn)
    }

    fn spread(&self, allowed: Option<&'a [u64]>) -> Choice {
        let turn = self.request.turn;
        let now = self.search(allowed, Room::Now).least(|block| &block.load, turn);
        let queue = || self.search(allowed, Room::Ever).least(|block| &block.waiting, turn);
        let queue = || queue().map(Choice::Queue);
        now.map(Choice::Now).or_else(queue).unwrap_or(Choice::Infeasible)
    }

    fn by_affinity(&self, affinity: &Affinity, allowed: Option<&'a [u64]>) -> Choice {
        let soft = affinity.soft;
        let usable = |&(node, slot): &(NodeNumber, u32)| {
            let (block, bit) = place(slot);
            allowed.is_none_or(|allowed| allowed[block] >> bit & 1 == 1)
                && !(soft && self.cluster.is_draining(node))
                && self.cluster.has_room(slot, self.needs, Room::Ever)
        };
        let node = self.cluster.number_of(&affinity.node);
        let node = node.and_then(|node| Some((node, self.cluster.slot(node)?))).filter(usable);
        match node {
            Some((node, slot)) if self.cluster.has_room(slot, self.needs, Room::Now) => {
                Choice::Now(node)
            }
            Some(_) if soft && affinity.spill_on_unavailable => self.by_default(allowed),
            Some((node, _)) if !affinity.fail_on_unavailable => Choice::Queue(node),
            None if soft => self.by_default(allowed),
            _ => Choice::Unschedulable(why::of_affinity(self.cluster, self.request, affinity)),
        }
    }

    fn by_labels(&self, soft: &[Selector], hard: Option<&'a [u64]>) -> Choice {
        if soft.is_empty() {
            return self.by_default(hard);
        }
        let mut both = hard.map_or_else(|| self.cluster.matching(&[]), <[u64]>::to_vec);
        self.cluster.narrow(&mut both, soft);
        let now = self.now(Some(&both)).or_else(|| self.now(hard)).map(Choice::Now);
        let queue = || self.queue(Some(&both)).or_else(|| self.queue(hard)).map(Choice::Queue);
        now.or_else(queue).unwrap_or(Choice::Infeasible)
    }
}

#[cfg(test)]
mod tests;
