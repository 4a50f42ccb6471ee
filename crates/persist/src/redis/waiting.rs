//! One that waits until nobody uses the state any more.

use std::time::Duration;

use ::redis::{Connection, cmd};
use oxiray_control::Table;

use super::lease::Lease;
use super::{PATIENCE, Redis, heads, key_of};
use crate::{Head, Persist, PersistError};

/// Waits for the state in Redis, and says that it does.
pub struct Standby {
    redis: Redis,
}

impl Standby {
    /// One for the store of this URL, which is not asked for anything yet.
    pub fn new(url: &str) -> Result<Self, PersistError> {
        if !url.starts_with("redis://") && !url.starts_with("rediss://") {
            return Err(PersistError::NotShared { url: crate::open::without_password(url) });
        }
        Ok(Self { redis: Redis::at(url)? })
    }

    /// Who reigns, or said so last; an error if there is nothing to take over.
    pub fn reigning(&mut self) -> Result<Option<Head>, PersistError> {
        match self.has_state()? {
            true => self
                .redis
                .with(PATIENCE, |connection, _, prefix| heads::reigning(connection, prefix)),
            false => Err(PersistError::NothingKept { at: self.redis.at.clone() }),
        }
    }

    /// Whether somebody still uses the state after all of `patience`. One that is gone does not.
    pub fn is_held_for(&mut self, patience: Duration) -> Result<bool, PersistError> {
        let look = |connection: &mut Connection, lease: &mut Lease, _: &str| {
            lease.is_held_for(connection, patience)
        };
        self.redis.with(PATIENCE, look)
    }

    /// Says that this one waits, at that address: where all are that reign or wait.
    pub fn announce(&mut self, address: &str) -> Result<Vec<String>, PersistError> {
        self.redis.announced = Some(address.to_owned());
        self.redis
            .with(PATIENCE, |connection, _, prefix| heads::is_there(connection, prefix, address))
    }

    /// Takes the state over if nobody uses it: whether it did. A Redis that has lost everything is
    /// left to whoever can still write it anew.
    pub fn attempt(&mut self) -> Result<bool, PersistError> {
        if !self.has_state()? {
            return Ok(false);
        }
        self.redis.with(PATIENCE, |connection, lease, _| lease.begin_if_free(connection))
    }

    fn has_state(&mut self) -> Result<bool, PersistError> {
        self.redis.with(PATIENCE, |connection, _, prefix| {
            let meta = key_of(prefix, Table::Meta);
            Ok(cmd("HEXISTS").arg(meta).arg("cluster").query(connection)?)
        })
    }

    /// The state, after [`Self::attempt`] had it.
    pub fn into_store(self) -> Box<dyn Persist> {
        Box::new(self.redis)
    }
}
