//! What people see of the cluster, and what they may do to it.

use oxiray_ids::NodeId;
use oxiray_wire::cluster::{NodeInfo, State, from_control};
use oxiray_wire::control::Text;

use crate::control::Control;
use crate::event::{Now, Outbox, PeerId};
use crate::listing::show_dead;

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
        let wanted = wanted.trim().to_ascii_lowercase();
        let hex = |info: &NodeInfo| NodeId::from_slice(&info.id).map(|id| id.to_string());
        let is_meant = |info: &NodeInfo| hex(info).is_some_and(|hex| hex.starts_with(&wanted));
        let infos = self.members.values().map(|member| &member.info);
        let meant: Vec<u32> = infos.filter(|info| is_meant(info)).map(|info| info.number).collect();
        match meant[..] {
            [number] if !wanted.is_empty() => {
                let why = "it was removed by hand";
                self.remove_member(number, why, true, now, out);
                if let Some(info) = self.left.back() {
                    out.send(peer, from_control::Body::NodeLeft(info.clone()));
                }
            }
            _ => {
                let text = match meant.len() {
                    0 => format!("no node's id begins with {wanted}: `oxiray status` shows all"),
                    _ => format!(
                        "the ids of {} nodes begin with {wanted:?}: give more of it",
                        meant.len()
                    ),
                };
                out.send(peer, from_control::Body::Refused(Text { text }));
            }
        }
    }
}
