//! Which nodes the bundles of a placement group go to.
//!
//! Pure, and of one pass over what is believed of the nodes: nobody is asked, and nothing is
//! taken. The same cluster and group give the same answer.
//!
//! Invariants, which the tests cite:
//!
//! - **G-1 (sound)** [`Packing::Now`] has a node for each bundle, which matches its selectors, does
//!   not drain, and has room for all that it got.
//! - **G-2 (strict is strict)** STRICT_PACK names one node, STRICT_SPREAD none twice, bundles that
//!   are placed already included.
//! - **G-3 (complete where it is easy)** STRICT_PACK and STRICT_SPREAD find a way if there is one.
//!   PACK and SPREAD are bin packing: large bundles first, and when that fails best fit.

mod rooms;
mod why;

use oxiray_wire::control::{Bundle, GroupStrategy};

use crate::cluster::{Cluster, NodeNumber};
use crate::labels::Selector;
use crate::wanted::selector;
use rooms::Rooms;

pub use why::explain_group;

/// A bundle that needs a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BundleWanted<'a> {
    /// What it needs.
    pub bundle: &'a Bundle,
    /// Labels that its node must have.
    pub selectors: Vec<Selector>,
}

impl<'a> BundleWanted<'a> {
    /// Reads it out of the wire's form.
    pub fn of(bundle: &'a Bundle) -> Self {
        Self { bundle, selectors: bundle.labels.iter().map(selector).collect() }
    }
}

/// A group, or what of it needs nodes.
#[derive(Clone, Debug)]
pub struct GroupWanted<'a> {
    /// Those without a node.
    pub bundles: Vec<BundleWanted<'a>>,
    /// Where they are to be.
    pub strategy: GroupStrategy,
    /// Nodes of the group's other bundles.
    pub placed: Vec<NodeNumber>,
    /// Rather this one.
    pub prefer: Option<NodeNumber>,
}

/// Where to go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packing {
    /// To these nodes, in the order of the bundles.
    Now(Vec<NodeNumber>),
    /// Nowhere now: there is too little room.
    NotNow,
    /// Nowhere, even if nothing else ran.
    Never,
}

/// Chooses nodes for all bundles, or for none; see the module documentation.
pub fn pack(cluster: &Cluster, group: &GroupWanted) -> Packing {
    if let Some(nodes) = Rooms::free(cluster, group).pack(group) {
        return Packing::Now(nodes);
    }
    match Rooms::total(cluster, group).pack(group) {
        Some(_) => Packing::NotNow,
        None => Packing::Never,
    }
}

/// The nodes that the bundles would go to if nothing else ran.
pub fn pack_when_free(cluster: &Cluster, group: &GroupWanted) -> Option<Vec<NodeNumber>> {
    Rooms::total(cluster, group).pack(group)
}

#[cfg(test)]
mod tests;
