//! What there is, in parts that go into a packet, for tools: nodes, programs, actors.
//!
//! A part says where the next one begins by the key of its last item. Things may come
//! and go between two parts: what was there all the time is listed, and an actor that
//! dies meanwhile may be listed twice, alive and dead.

use std::collections::BTreeSet;
use std::ops::{Bound, RangeBounds};

use oxiray_ids::{ActorId, ProcessId};
use oxiray_wire::cluster::{ActorInfo, Job, NodeInfo, SUBMISSIONS};
use oxiray_wire::control::{ActorPhase, Listing, Query, Submission, Topic, from_node};
use prost::Message;

use crate::actors::Actor;
use crate::control::Control;
use crate::event::Outbox;
use crate::record::DeadRecord;

/// Bytes of one part.
const MOST_BYTES: usize = 64 << 10;

/// Bytes of a text in a listing: a packet must hold what it belongs to.
const LONGEST_TEXT: usize = 8 << 10;

/// First byte of the key of what lives, and of what does not.
const LIVING: u8 = 0;
const GONE: u8 = 1;

/// As many items as go into one part, and the key of the last one if there are more.
pub fn part_of<T: Message>(items: impl Iterator<Item = (Vec<u8>, T)>) -> (Vec<T>, Vec<u8>) {
    let mut part: Vec<T> = Vec::new();
    let mut bytes = 0;
    let mut last = Vec::new();
    for (key, item) in items {
        bytes += item.encoded_len() + 8;
        if bytes > MOST_BYTES && !part.is_empty() {
            return (part, last);
        }
        part.push(item);
        last = key;
    }
    (part, Vec::new())
}

/// The beginning of a text that may be long.
pub fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST_TEXT)].to_owned()
}

/// Where to go on in two tables of which one follows the other: after which key of the
/// first, if that is not through, and of the second.
pub fn places<K>(after: &[u8], key: impl Fn(&[u8]) -> Option<K>) -> (Option<Bound<K>>, Bound<K>) {
    match after.split_first() {
        Some((&LIVING, rest)) => {
            (Some(key(rest).map_or(Bound::Unbounded, Bound::Excluded)), Bound::Unbounded)
        }
        Some((&GONE, rest)) => (None, key(rest).map_or(Bound::Unbounded, Bound::Excluded)),
        _ => (Some(Bound::Unbounded), Bound::Unbounded),
    }
}

/// The key of an item of the first table.
pub fn living(key: &[u8]) -> Vec<u8> {
    [&[LIVING], key].concat()
}

/// The key of an item of the second table.
pub fn gone(key: &[u8]) -> Vec<u8> {
    [&[GONE], key].concat()
}

impl Control {
    /// A tool asks by way of its node.
    pub(crate) fn on_query(&self, from: ProcessId, query: Query, out: &mut impl Outbox) {
        let request = query.request;
        let mut listing = Listing { request, ..Listing::default() };
        match query.topic() {
            Topic::Nodes => (listing.nodes, listing.next) = self.nodes_after(&query.after),
            Topic::Jobs => self.list_jobs(&query.after, &mut listing),
            Topic::Actors => (listing.actors, listing.next) = self.actors_after(&query.after),
            Topic::Groups => (listing.groups, listing.next) = self.groups_after(&query.after),
            _ => return out.note(format!("process {from} asks what its node should answer")),
        }
        self.tell(from, from_node::Body::Listing(listing), out);
    }

    fn nodes_after(&self, after: &[u8]) -> (Vec<NodeInfo>, Vec<u8>) {
        let number = |key: &[u8]| Some(u32::from_be_bytes(key.try_into().ok()?));
        let (members, left) = places(after, number);
        let members = members.map(|from| self.members.range((from, Bound::Unbounded)));
        let members = members.into_iter().flatten().map(|(number, member)| {
            let info = NodeInfo { waiting_for: Vec::new(), ..member.info.clone() };
            (living(&number.to_be_bytes()), info)
        });
        // Nodes leave in any order.
        let mut gone_ones: Vec<&NodeInfo> = self.left.iter().collect();
        gone_ones.sort_unstable_by_key(|info| info.number);
        let later = move |info: &&NodeInfo| match left {
            Bound::Excluded(number) => info.number > number,
            _ => true,
        };
        let left = gone_ones.into_iter().filter(later).map(|info| {
            let shown =
                NodeInfo { waiting_for: Vec::new(), left: shortened(&info.left), ..info.clone() };
            (gone(&info.number.to_be_bytes()), shown)
        });
        part_of(members.chain(left))
    }

    /// Programs, and then what was handed in: some of the programs are of those.
    fn list_jobs(&self, after: &[u8], listing: &mut Listing) {
        let (programs, submissions) = places(after, |key| Some(key.to_vec()));
        match programs {
            Some(from) => {
                (listing.jobs, listing.next) = self.jobs_after(from);
                if listing.next.is_empty()
                    && self.submissions_after(Bound::Unbounded).next().is_some()
                {
                    listing.next = gone(&[]);
                }
            }
            None => {
                let found = self.submissions_after(submissions);
                (listing.submissions, listing.next) = part_of(found);
            }
        }
    }

    fn submissions_after(
        &self,
        after: Bound<Vec<u8>>,
    ) -> impl Iterator<Item = (Vec<u8>, Submission)> {
        let key = |id| (SUBMISSIONS.to_owned(), id);
        let from = match after {
            Bound::Unbounded => Bound::Included(key(Vec::new())),
            after => after.map(key),
        };
        let rest = self.kv.range((from, Bound::Unbounded));
        let all = rest.take_while(|((namespace, _), _)| namespace == SUBMISSIONS);
        all.map(|((_, id), value)| {
            // The rest of it may be long.
            let line = value.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let said = line[..line.len().min(LONGEST_TEXT)].to_vec();
            (gone(id), Submission { id: String::from_utf8_lossy(id).into_owned(), said })
        })
    }

    fn jobs_after(&self, from: Bound<Vec<u8>>) -> (Vec<Job>, Vec<u8>) {
        let jobs = self.jobs.range((from, Bound::Unbounded));
        part_of(jobs.map(|(id, job)| {
            let shown = Job {
                entrypoint: shortened(&job.entrypoint),
                failure: shortened(&job.failure),
                ..job.clone()
            };
            (living(id), shown)
        }))
    }

    fn actors_after(&self, after: &[u8]) -> (Vec<ActorInfo>, Vec<u8>) {
        let (alive, dead) = places(after, ActorId::from_slice);
        let alive = alive.into_iter().flat_map(|from| self.living_after(from));
        let dead = self.dead.after(dead);
        part_of(alive.chain(dead.map(|(id, dead)| (gone(&id.0), show_dead(*id, dead)))))
    }

    /// Actors that are not dead, and those that their creators have not asked for yet.
    fn living_after(&self, from: Bound<ActorId>) -> impl Iterator<Item = (Vec<u8>, ActorInfo)> {
        let made = self.actors.range((from, Bound::Unbounded)).map(|(id, _)| *id);
        let mut made = made.peekable();
        let expected = self.expected.keys().map(|&(_, id)| id);
        let expected: BTreeSet<ActorId> =
            expected.filter(|id| (from, Bound::Unbounded).contains(id)).collect();
        let mut expected = expected.into_iter().peekable();
        std::iter::from_fn(move || match (made.peek(), expected.peek()) {
            (Some(a), Some(b)) if a < b => made.next(),
            (_, Some(_)) => expected.next(),
            (_, None) => made.next(),
        })
        .map(|id| {
            let info = match self.actors.get(&id) {
                Some(actor) => self.show(id, actor),
                None => ActorInfo { actor: id.0.to_vec(), expected: true, ..ActorInfo::default() },
            };
            (living(&id.0), info)
        })
    }

    /// An actor that is not dead.
    pub(crate) fn show(&self, id: ActorId, actor: &Actor) -> ActorInfo {
        let (namespace, name) = self.names.of(&id).unwrap_or(&actor.last_name).clone();
        let Actor { record, waits_because, .. } = actor;
        let create = record.create.clone().unwrap_or_default();
        ActorInfo {
            actor: id.0.to_vec(),
            class_name: shortened(&create.class_name),
            name,
            namespace,
            phase: record.phase,
            node: record.node,
            restarts: record.restarts,
            reason: shortened(if waits_because.is_empty() {
                &record.reason
            } else {
                waits_because
            }),
            process: record.process,
            pid: record.pid,
            detached: create.detached,
            resources: create.placement.unwrap_or_default().resources,
            expected: false,
        }
    }
}

/// An actor that died.
pub(crate) fn show_dead(id: ActorId, dead: &DeadRecord) -> ActorInfo {
    let info = dead.info.clone().unwrap_or_default();
    ActorInfo {
        actor: id.0.to_vec(),
        class_name: shortened(&dead.class_name),
        phase: ActorPhase::Dead.into(),
        restarts: dead.restarts,
        reason: shortened(&dead.reason),
        ..info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: u32, text: usize) -> (Vec<u8>, Job) {
        let id = number.to_be_bytes().to_vec();
        (id.clone(), Job { id, entrypoint: "x".repeat(text), ..Job::default() })
    }

    #[test]
    fn parts_are_bounded_and_leave_nothing_out() {
        let all: Vec<_> = (0..1000).map(|number| job(number, 500)).collect();
        let mut seen = Vec::new();
        let mut after: Vec<u8> = Vec::new();
        loop {
            let rest = all.iter().filter(|(id, _)| after.is_empty() || *id > after).cloned();
            let (part, next) = part_of(rest);
            let bytes: usize = part.iter().map(Message::encoded_len).sum();
            assert!(bytes <= MOST_BYTES && !part.is_empty());
            seen.extend(part.into_iter().map(|job| job.id));
            if next.is_empty() {
                break;
            }
            after = next;
        }
        assert_eq!(seen, all.into_iter().map(|(id, _)| id).collect::<Vec<_>>());
    }

    #[test]
    fn one_item_larger_than_a_part_is_a_part() {
        let (part, next) = part_of([job(1, 2 * MOST_BYTES), job(2, 1)].into_iter());
        assert_eq!((part.len(), next), (1, 1u32.to_be_bytes().to_vec()));
    }

    #[test]
    fn the_second_table_follows_the_first() {
        let key = |bytes: &[u8]| bytes.first().copied();
        assert_eq!(places(&[], key), (Some(Bound::Unbounded), Bound::Unbounded));
        assert_eq!(places(&living(&[7]), key), (Some(Bound::Excluded(7)), Bound::Unbounded));
        assert_eq!(places(&gone(&[9]), key), (None, Bound::Excluded(9)));
    }
}
