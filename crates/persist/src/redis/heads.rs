//! Where control services are that use the state in Redis, or wait to: a sorted set of addresses,
//! each with the time until which it counts unless it is said again. The times are Redis' own, so
//! that the clocks of machines do not matter. Nothing is decided by this: who reigns is the lease's.

use ::redis::{Connection, Pipeline, cmd};

use super::{Trouble, ask};
use crate::Head;

/// How long an address counts after it was said, in milliseconds.
const COUNTS_MS: u64 = 5_000;

/// This one is there: all that are, in an order that does not follow who spoke last, so that the same
/// list is no news.
pub(super) fn is_there(
    connection: &mut Connection,
    prefix: &str,
    address: &str,
) -> Result<Vec<String>, Trouble> {
    let (seconds, micros): (u64, u64) = cmd("TIME").query(connection)?;
    let now = seconds * 1000 + micros / 1000;
    let key = format!("{prefix}heads");
    let mut say = Pipeline::new();
    say.cmd("ZADD").arg(&key).arg(now + COUNTS_MS).arg(address);
    say.cmd("ZREMRANGEBYSCORE").arg(&key).arg("-inf").arg(now);
    ask(connection, &say)?;
    let mut all: Vec<String> = cmd("ZRANGE").arg(&key).arg(0).arg(-1).query(connection)?;
    all.sort_unstable();
    Ok(all)
}

/// This one is there, and reigns: all that are there.
pub(super) fn reigns(
    connection: &mut Connection,
    prefix: &str,
    head: &Head,
) -> Result<Vec<String>, Trouble> {
    let Head { address, version } = head;
    let said = format!("{version} {address}");
    let () = cmd("SET").arg(format!("{prefix}reigning")).arg(said).query(connection)?;
    is_there(connection, prefix, address)
}

/// Who said last that it reigns.
pub(super) fn reigning(connection: &mut Connection, prefix: &str) -> Result<Option<Head>, Trouble> {
    let said: Option<String> = cmd("GET").arg(format!("{prefix}reigning")).query(connection)?;
    Ok(said.and_then(|said| {
        let (version, address) = said.split_once(' ')?;
        Some(Head { address: address.to_owned(), version: version.parse().ok()? })
    }))
}

/// This one is no longer there.
pub(super) fn leaves(connection: &mut Connection, prefix: &str, address: &str) {
    let mut remove = cmd("ZREM");
    remove.arg(format!("{prefix}heads")).arg(address);
    // It is forgotten by itself, if later.
    let _: Result<u64, _> = remove.query(connection);
}
