//! The room of all nodes, as far as a group is concerned, and how bundles are put into it.

use oxiray_wire::control::{Amount, GroupStrategy};

use super::GroupWanted;
use crate::cluster::{Cluster, NodeNumber};

/// A bundle's share of the most that a node has counts in these.
const WHOLE: u64 = 1_000_000;

/// One node.
#[derive(Clone, Debug)]
struct Room {
    node: NodeNumber,
    /// Of each resource that the group names.
    free: Vec<u64>,
    /// It has GPUs, and no bundle needs one.
    wasted: bool,
    /// Bundles of the group that are here already.
    has: usize,
    is_preferred: bool,
}

/// One bundle.
#[derive(Debug)]
struct Need {
    /// Its place among the group's.
    index: usize,
    /// Of each resource that the group names.
    amounts: Vec<u64>,
    /// Of each node; none: all will do.
    allowed: Option<Vec<bool>>,
}

/// See the module documentation.
pub(super) struct Rooms {
    rooms: Vec<Room>,
    /// The largest first.
    needs: Vec<Need>,
}

impl Rooms {
    /// By what is believed to be free.
    pub(super) fn free(cluster: &Cluster, group: &GroupWanted) -> Self {
        Self::new(cluster, group, |node| cluster.available(node))
    }

    /// As if nothing ran.
    pub(super) fn total(cluster: &Cluster, group: &GroupWanted) -> Self {
        Self::new(cluster, group, |node| cluster.total(node))
    }

    fn new(
        cluster: &Cluster,
        group: &GroupWanted,
        amounts: impl Fn(NodeNumber) -> Vec<Amount>,
    ) -> Self {
        let all = group.bundles.iter().flat_map(|wanted| &wanted.bundle.resources);
        let mut names: Vec<&str> = all.map(|amount| &*amount.name).collect();
        names.sort_unstable();
        names.dedup();
        let column = |amounts: &[Amount]| -> Vec<u64> {
            let of = |name: &&str| {
                let named = amounts.iter().filter(|amount| amount.name == **name);
                named.fold(0u64, |sum, amount| sum.saturating_add(amount.amount))
            };
            names.iter().map(of).collect()
        };
        let needs_gpu = names.contains(&"GPU");
        let nodes = cluster.nodes().filter(|&node| !cluster.is_draining(node));
        let rooms: Vec<Room> = nodes
            .map(|node| Room {
                node,
                free: column(&amounts(node)),
                wasted: !needs_gpu && cluster.total(node).iter().any(|a| a.name == "GPU"),
                has: group.placed.iter().filter(|placed| **placed == node).count(),
                is_preferred: group.prefer == Some(node),
            })
            .collect();
        let most: Vec<u64> = (0..names.len())
            .map(|at| cluster.nodes().map(|n| column(&cluster.total(n))[at]).max().unwrap_or(0))
            .collect();
        let mut needs: Vec<Need> = group
            .bundles
            .iter()
            .enumerate()
            .map(|(index, wanted)| {
                let matches = |room: &Room| {
                    let labels = cluster.labels(room.node);
                    labels.is_some_and(|labels| wanted.selectors.iter().all(|s| s.matches(labels)))
                };
                let allowed = (!wanted.selectors.is_empty())
                    .then(|| rooms.iter().map(matches).collect::<Vec<bool>>());
                Need { index, amounts: column(&wanted.bundle.resources), allowed }
            })
            .collect();
        let size = |need: &Need| -> u64 {
            let share = |(amount, most): (&u64, &u64)| {
                u128::from(*amount) * u128::from(WHOLE) / u128::from((*most).max(1))
            };
            let sum: u128 = need.amounts.iter().zip(&most).map(share).sum();
            u64::try_from(sum).unwrap_or(u64::MAX)
        };
        needs.sort_by_key(|need| (std::cmp::Reverse(size(need)), need.index));
        Self { rooms, needs }
    }

    /// A node for each bundle, in their order; `None`: there is no way, or none was found.
    pub(super) fn pack(self, group: &GroupWanted) -> Option<Vec<NodeNumber>> {
        let chosen = match group.strategy {
            GroupStrategy::StrictPack => self.on_one(),
            GroupStrategy::StrictSpread => self.each_on_its_own(),
            GroupStrategy::Pack => self.on_few().or_else(|| self.best_fit()),
            GroupStrategy::Spread => self.evenly().or_else(|| self.best_fit()),
        }?;
        let mut nodes = vec![NodeNumber(0); self.needs.len()];
        for (need, room) in self.needs.iter().zip(chosen) {
            nodes[need.index] = self.rooms[room].node;
        }
        Some(nodes)
    }

    fn fits(&self, need: &Need, room: usize, free: &[u64]) -> bool {
        need.allowed.as_ref().is_none_or(|allowed| allowed[room])
            && need.amounts.iter().zip(free).all(|(amount, free)| amount <= free)
    }

    /// Which of the bundles in `remaining` go to a room, one after the other.
    fn fill(&self, room: usize, remaining: &[usize]) -> Vec<usize> {
        let mut free = self.rooms[room].free.clone();
        let mut filled = Vec::new();
        for &at in remaining {
            if self.fits(&self.needs[at], room, &free) {
                take(&mut free, &self.needs[at]);
                filled.push(at);
            }
        }
        filled
    }

    /// How little is left of a room, by the resources that are asked for.
    fn leftover(&self, room: usize, filled: &[usize]) -> u64 {
        let mut free = self.rooms[room].free.clone();
        filled.iter().for_each(|&at| take(&mut free, &self.needs[at]));
        free.iter().fold(0, |sum, free| sum.saturating_add(*free))
    }

    fn on_one(&self) -> Option<Vec<usize>> {
        let all: Vec<usize> = (0..self.needs.len()).collect();
        let is_placed = self.rooms.iter().any(|room| room.has > 0);
        let will_do = |&room: &usize| {
            (!is_placed || self.rooms[room].has > 0) && self.fill(room, &all).len() == all.len()
        };
        let rank = |&room: &usize| {
            let Room { is_preferred, wasted, .. } = self.rooms[room];
            (!is_preferred, wasted, self.leftover(room, &all))
        };
        let best = (0..self.rooms.len()).filter(will_do).min_by_key(rank)?;
        Some(vec![best; all.len()])
    }

    /// Nodes one after the other, always that which takes most of the rest.
    fn on_few(&self) -> Option<Vec<usize>> {
        let mut chosen = vec![usize::MAX; self.needs.len()];
        let mut remaining: Vec<usize> = (0..self.needs.len()).collect();
        let mut unused: Vec<usize> = (0..self.rooms.len()).collect();
        while !remaining.is_empty() {
            let filled = unused.iter().map(|&room| (room, self.fill(room, &remaining)));
            let filled = filled.filter(|(_, filled)| !filled.is_empty());
            let (room, filled) = filled.min_by_key(|(room, filled)| {
                let Room { has, wasted, is_preferred, .. } = self.rooms[*room];
                let few = remaining.len() - filled.len();
                (has == 0, few, !is_preferred, wasted, self.leftover(*room, filled))
            })?;
            filled.iter().for_each(|&at| chosen[at] = room);
            remaining.retain(|at| !filled.contains(at));
            unused.retain(|&other| other != room);
        }
        Some(chosen)
    }

    /// Each bundle where the group has fewest, and there is most left.
    fn evenly(&self) -> Option<Vec<usize>> {
        let mut rooms = self.rooms.clone();
        let choose = |(need, rooms): (&Need, &mut Vec<Room>)| {
            let fitting = (0..rooms.len()).filter(|&room| self.fits(need, room, &rooms[room].free));
            let room = fitting.min_by_key(|&room| {
                let left = rooms[room].free.iter().fold(0u64, |sum, f| sum.saturating_add(*f));
                (rooms[room].has, rooms[room].wasted, std::cmp::Reverse(left))
            })?;
            take(&mut rooms[room].free, need);
            rooms[room].has += 1;
            Some(room)
        };
        self.needs.iter().map(|need| choose((need, &mut rooms))).collect()
    }

    /// Each bundle where least is left then: what fails in another way may go in this.
    fn best_fit(&self) -> Option<Vec<usize>> {
        let mut rooms = self.rooms.clone();
        let choose = |(need, rooms): (&Need, &mut Vec<Room>)| {
            let fitting = (0..rooms.len()).filter(|&room| self.fits(need, room, &rooms[room].free));
            let room = fitting.min_by_key(|&room| {
                rooms[room].free.iter().fold(0u64, |sum, free| sum.saturating_add(*free))
            })?;
            take(&mut rooms[room].free, need);
            Some(room)
        };
        self.needs.iter().map(|need| choose((need, &mut rooms))).collect()
    }

    /// A matching of bundles and nodes, by paths that make room for one more bundle (Kuhn): exact.
    fn each_on_its_own(&self) -> Option<Vec<usize>> {
        let mut taken_by: Vec<Option<usize>> = vec![None; self.rooms.len()];
        // Rooms with much left first, and those with GPUs that nobody wants last.
        let mut order: Vec<usize> =
            (0..self.rooms.len()).filter(|&room| self.rooms[room].has == 0).collect();
        order.sort_by_key(|&room| {
            (self.rooms[room].wasted, std::cmp::Reverse(self.leftover(room, &[])), room)
        });
        for at in 0..self.needs.len() {
            let mut seen = vec![false; self.rooms.len()];
            if !self.make_room(at, &order, &mut seen, &mut taken_by) {
                return None;
            }
        }
        let mut chosen = vec![usize::MAX; self.needs.len()];
        for (room, at) in taken_by.iter().enumerate() {
            if let Some(at) = at {
                chosen[*at] = room;
            }
        }
        Some(chosen)
    }

    /// Finds a room for a bundle; those that have one may have to move. By a stack of its own:
    /// the paths may be as long as there are nodes.
    fn make_room(
        &self,
        at: usize,
        order: &[usize],
        seen: &mut [bool],
        taken_by: &mut [Option<usize>],
    ) -> bool {
        // Bundles on the path, and how far each has looked.
        let mut path: Vec<(usize, usize)> = vec![(at, 0)];
        while let Some((bundle, next)) = path.last_mut() {
            let Some(&room) = order.get(*next) else {
                path.pop();
                continue;
            };
            *next += 1;
            if seen[room] || !self.fits(&self.needs[*bundle], room, &self.rooms[room].free) {
                continue;
            }
            seen[room] = true;
            match taken_by[room] {
                Some(other) => path.push((other, 0)),
                None => {
                    // Each bundle of the path takes the room that it looked at last.
                    for (bundle, next) in path {
                        taken_by[order[next - 1]] = Some(bundle);
                    }
                    return true;
                }
            }
        }
        false
    }
}

fn take(free: &mut [u64], need: &Need) {
    for (free, amount) in free.iter_mut().zip(&need.amounts) {
        *free -= amount;
    }
}
