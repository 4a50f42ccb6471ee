//! Beginning again from what was kept.

use std::ops::Bound;

use oxiray_ids::{ActorId, GroupId, ProcessId};
use oxiray_wire::cluster::{Job, NodeInfo};
use prost::Message;

use crate::actors::Actor;
use crate::control::Control;
use crate::dead_actors::DeadActors;
use crate::event::{Now, Record, Table};
use crate::members::Member;
use crate::names::Bearer;
use crate::record::{self, ActorRecord, DeadRecord, GroupRecord, NameRecord};

/// What was kept cannot be used. Trying again does not help.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Damaged {
    /// A record cannot be read, or speaks of what is not there.
    #[error(
        "the record {key} of table `{}` is damaged, or of a later version of oxiray",
        table.name()
    )]
    Record {
        /// Of this table.
        table: Table,
        /// Its key in hexadecimal.
        key: String,
    },
    /// There are records, and no name of a cluster.
    #[error("there are records, but none that names the cluster")]
    NoCluster,
}

fn damaged(table: Table, key: &[u8]) -> Damaged {
    let key = key.iter().map(|byte| format!("{byte:02x}")).collect();
    Damaged::Record { table, key }
}

impl Control {
    /// Begins again from what was kept, all of it; from nothing there is nothing
    /// to begin. Former members have [`crate::GRACE`] from now to come back.
    pub fn restore(records: Vec<Record>, now: Now) -> Result<Option<Self>, Damaged> {
        let is_name =
            |record: &&Record| record.table == Table::Meta && record.key == record::CLUSTER;
        let Some(name) = records.iter().find(is_name) else {
            return if records.is_empty() { Ok(None) } else { Err(Damaged::NoCluster) };
        };
        let cluster = <[u8; 16]>::try_from(&name.value[..]);
        let cluster = cluster.map_err(|_| damaged(Table::Meta, record::CLUSTER))?;
        let mut control = Self::empty(cluster, now);
        let mut dead = Vec::new();
        for Record { table, key, value } in records {
            let read = match table {
                Table::Dead => ActorId::from_slice(&key)
                    .zip(DeadRecord::decode(&value[..]).ok())
                    .map(|record| dead.push(record)),
                _ => control.take_in(table, &key, value, now),
            };
            read.ok_or_else(|| damaged(table, &key))?;
        }
        control.dead = DeadActors::restore(dead);
        let mut ended: Vec<&Job> = control.jobs.values().filter(|job| job.ended_ms != 0).collect();
        ended.sort_by_key(|job| job.ended_ms);
        control.ended_jobs = ended.into_iter().map(|job| job.id.clone()).collect();
        control.settle_restored()?;
        Ok(Some(control))
    }

    /// Everything that must be kept, for a store that has lost it.
    pub fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        let mut keep = |table, key: &[u8], value: Vec<u8>| {
            records.push(Record { table, key: key.to_vec(), value });
        };
        keep(Table::Meta, record::CLUSTER, self.cluster.to_vec());
        if self.last_number > 0 {
            keep(Table::Meta, record::LAST_NUMBER, self.last_number.to_be_bytes().to_vec());
        }
        for (&number, member) in &self.members {
            keep(Table::Node, &record::node_key(number), member.info.encode_to_vec());
        }
        for (id, actor) in &self.actors {
            keep(Table::Actor, &id.0, actor.record.encode_to_vec());
        }
        for (id, value) in self.dead.kept() {
            keep(Table::Dead, &id.0, value);
        }
        for (name, bearer) in self.names.iter() {
            let value = record::name_value(name, bearer.creator, &bearer.about);
            keep(Table::Name, &record::name_key(bearer.actor), value);
        }
        for (id, job) in &self.jobs {
            keep(Table::Job, id, job.encode_to_vec());
        }
        for (id, value) in self.groups.kept() {
            keep(Table::Group, &id.0, value);
        }
        for (&node, done) in &self.kv_done {
            keep(Table::Meta, &record::kv_done_key(node), record::kv_done_value(done));
        }
        for ((namespace, key), value) in &self.kv {
            keep(Table::Kv, &record::kv_key(namespace, key), value.clone());
        }
        records
    }

    /// `None`: it cannot be read.
    fn take_in(&mut self, table: Table, key: &[u8], value: Vec<u8>, now: Now) -> Option<()> {
        match table {
            Table::Meta if key == record::LAST_NUMBER => {
                self.last_number = u32::from_be_bytes(value.try_into().ok()?);
            }
            Table::Meta => {
                if let Some(node) = record::kv_done_node(key) {
                    self.kv_done.insert(node, record::split_kv_done(&value)?);
                }
            }
            Table::Dead => {}
            Table::Node => {
                let info = NodeInfo::decode(&value[..]).ok()?;
                let is_its = info.number != 0 && key == record::node_key(info.number);
                (is_its && info.left.is_empty()).then_some(())?;
                self.members.insert(info.number, Member::new(info, None, now));
            }
            Table::Actor => {
                let id = ActorId::from_slice(key)?;
                let record = ActorRecord::decode(&value[..]).ok()?;
                record.create.as_ref().filter(|create| create.actor == key)?;
                self.actors.insert(id, Actor { record, ..Actor::default() });
            }
            Table::Name => {
                let actor = ActorId::from_slice(key)?;
                let NameRecord { namespace, name, creator, about } =
                    NameRecord::decode(&value[..]).ok()?;
                let bearer = Bearer { actor, creator: ProcessId(creator), about };
                self.names.take((namespace, name), bearer).then_some(())?;
            }
            Table::Job => {
                let job = Job::decode(&value[..]).ok()?;
                (job.id == key).then_some(())?;
                self.jobs.insert(key.to_vec(), job);
            }
            Table::Group => {
                let id = GroupId::from_slice(key)?;
                let record = GroupRecord::decode(&value[..]).ok()?;
                let create = record.create.as_ref().filter(|create| create.group == key)?;
                (create.bundles.len() == record.nodes.len()).then_some(())?;
                self.groups.restore(id, record).then_some(())?;
            }
            Table::Kv => {
                self.kv.insert(record::split_kv_key(key)?, value);
            }
        }
        Some(())
    }

    /// Each record can be read; together they must say nothing that cannot be.
    fn settle_restored(&mut self) -> Result<(), Damaged> {
        if let Some((&number, _)) =
            self.members.range((Bound::Excluded(self.last_number), Bound::Unbounded)).next()
        {
            return Err(damaged(Table::Node, &record::node_key(number)));
        }
        if let Some((_, dead)) =
            self.names.iter().find(|(_, it)| self.dead.get(&it.actor).is_some())
        {
            return Err(damaged(Table::Name, &record::name_key(dead.actor)));
        }
        let cannot_be = |(id, actor): &(&ActorId, &Actor)| {
            let waits_for_nobody = actor.record.node == 0 && !self.can_be_made(&actor.record);
            self.dead.get(id).is_some() || waits_for_nobody
        };
        if let Some((id, _)) = self.actors.iter().find(cannot_be) {
            return Err(damaged(Table::Actor, &id.0));
        }
        if let Some(id) = self.groups.settle_restored(&self.members) {
            return Err(damaged(Table::Group, &id.0));
        }
        for (&id, actor) in &mut self.actors {
            if actor.record.node == 0 {
                self.waiting.insert(id);
                actor.waits_because = "the control service was started again just now".into();
                continue;
            }
            let member = self.members.get_mut(&actor.record.node);
            let member = member.ok_or_else(|| damaged(Table::Actor, &id.0))?;
            member.actors.insert(id);
        }
        Ok(())
    }
}
