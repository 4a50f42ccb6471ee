//! What people see of the cluster, and what they may do to it.

use oxiray_wire::cluster::{State, from_control};
use oxiray_wire::control::Text;

use crate::control::Control;
use crate::event::{Now, Outbox, PeerId};
use crate::leaving::Told;
use crate::listing::show_dead;

/// Why a node left that somebody wanted to: it does not come back by itself.
pub(crate) const REMOVED_BY_HAND: &str = "it was removed by hand";
/// Dead actors that are shown.
const MOST_DEAD: usize = 1_000;

impl Control {
    pub(crate) fn state(&self) -> State {
        let members = self.members.values().map(|member| member.info.clone());
        let alive = self.actors.iter().map(|(&id, actor)| self.show(id, actor));
        let dead = self.dead.latest().take(MOST_DEAD).map(|(id, dead)| show_dead(id, dead));
        State {
            cluster: self.cluster.to_vec(),
            nodes: members.chain(self.left.iter().cloned()).collect(),
            jobs: self.jobs.values().cloned().collect(),
            actors: alive.chain(dead).collect(),
            store: self.store.clone(),
            store_trouble: self.store_trouble.clone(),
            heads: self.heads.clone(),
        }
    }

    /// Makes the node leave whose id, in hexadecimal, begins with `wanted`. The
    /// answer is that it left, or why it cannot be said which is meant.
    pub(crate) fn on_remove(
        &mut self,
        peer: PeerId,
        wanted: &str,
        now: Now,
        out: &mut impl Outbox,
    ) {
        match self.meant(wanted) {
            Ok(number) => {
                self.remove_member(number, REMOVED_BY_HAND, Told::Removed, now, out);
                if let Some(info) = self.left.back() {
                    out.send(peer, from_control::Body::NodeLeft(info.clone()));
                }
            }
            Err(text) => out.send(peer, from_control::Body::Refused(Text { text })),
        }
    }
}
