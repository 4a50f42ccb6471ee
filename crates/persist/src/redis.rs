//! Redis: state that outlives the head machine.
//!
//! One hash for each table, `oxiray:{NAME}:actor` and so on, where NAME is
//! `default` or what the URL says: `redis://host/0?cluster=NAME`. The braces
//! keep all keys on one server of a Redis cluster.
//!
//! A *lease*, `oxiray:{NAME}:lease`, says who uses it, and `oxiray:{NAME}:reign` how often
//! that has changed. Every write is a transaction that fails if either is not ours, so that one
//! who was away for too long cannot disturb its successor (S-4), nor what that left behind.
//!
//! `oxiray:{NAME}:heads` and `oxiray:{NAME}:reigning` say where the control services are that use it
//! or wait to.

mod heads;
mod lease;
mod waiting;

use std::time::Duration;

use ::redis::{Client, Connection, ConnectionAddr, ErrorKind, Pipeline, RedisError, Value, cmd};
use oxiray_control::{Change, Record, Table};
use url::Url;

use crate::open::without_password;
use crate::{Head, Persist, PersistError};
use lease::{Holder, Lease};
pub use waiting::Standby;

/// How long to wait for Redis to take a connection, or to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long for everything that is kept.
const LOAD_PATIENCE: Duration = Duration::from_secs(30);

/// Keeps state in Redis.
pub struct Redis {
    client: Client,
    connection: Option<Connection>,
    /// Host and port, for people.
    at: String,
    /// The URL without its password.
    described: String,
    /// `oxiray:{NAME}:`.
    prefix: String,
    lease: Lease,
    /// Where this one is, as others were told.
    announced: Option<String>,
}

/// What went wrong, before it is said where.
enum Trouble {
    Redis(RedisError),
    Taken(String),
    Succeeded,
    Emptied,
}

impl From<RedisError> for Trouble {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

impl Redis {
    /// Connects, and takes the lease. Whoever had it before has a moment to show that it lives.
    pub fn open(url: &str) -> Result<Self, PersistError> {
        let mut redis = Self::at(url)?;
        redis.with(PATIENCE, |connection, lease, _| lease.begin(connection))?;
        Ok(redis)
    }

    /// The one at this URL, which is neither asked for anything yet nor used.
    fn at(url: &str) -> Result<Self, PersistError> {
        // The library takes the one that the process has; ours is ring. It may have been set.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let refused = |why: String| PersistError::Url { url: without_password(url), why };
        let (plain, name) = split_name(url).map_err(refused)?;
        let client = Client::open(plain).map_err(|error| refused(in_words(&error)))?;
        let at = match client.get_connection_info().addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                format!("{host}:{port}")
            }
            other => other.to_string(),
        };
        let prefix = format!("oxiray:{{{name}}}:");
        let lease = Lease::new(&prefix, Holder::this());
        let described = without_password(url);
        let (connection, announced) = (None, None);
        Ok(Self { client, connection, at, described, prefix, lease, announced })
    }

    /// Does something with a connection, a new one if need be. After trouble
    /// that may be the connection's, the next one is new.
    fn with<T>(
        &mut self,
        patience: Duration,
        act: impl FnOnce(&mut Connection, &mut Lease, &str) -> Result<T, Trouble>,
    ) -> Result<T, PersistError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let connected = self.client.get_connection_with_timeout(PATIENCE);
                connected.map_err(|error| self.said(error))?
            }
        };
        let limited = connection
            .set_read_timeout(Some(patience))
            .and_then(|()| connection.set_write_timeout(Some(patience)));
        limited.map_err(|error| self.said(error))?;
        match act(&mut connection, &mut self.lease, &self.prefix) {
            Ok(done) => {
                self.connection = Some(connection);
                Ok(done)
            }
            Err(Trouble::Redis(error)) => Err(self.said(error)),
            Err(Trouble::Taken(by)) => Err(PersistError::Taken { at: self.at.clone(), by }),
            Err(Trouble::Succeeded) => Err(PersistError::Succeeded { at: self.at.clone() }),
            Err(Trouble::Emptied) => Err(PersistError::Emptied { at: self.at.clone() }),
        }
    }

    fn said(&self, error: RedisError) -> PersistError {
        let (at, why) = (self.at.clone(), in_words(&error));
        let refuses = matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"));
        if refuses || error.kind() == ErrorKind::AuthenticationFailed {
            PersistError::Password { at, why }
        } else if why.contains("certificate") {
            PersistError::Certificate { at, why }
        } else if error.kind() == ErrorKind::Parse {
            PersistError::NotRedis { at }
        } else if error.is_io_error() || error.is_connection_dropped() {
            PersistError::Unreachable { at, why }
        } else {
            PersistError::Redis { at, why }
        }
    }
}

impl Persist for Redis {
    fn load(&mut self) -> Result<Vec<Record>, PersistError> {
        self.with(LOAD_PATIENCE, |connection, lease, prefix| {
            let mut records = Vec::new();
            for table in Table::ALL {
                let pairs: Vec<(Vec<u8>, Vec<u8>)> =
                    cmd("HGETALL").arg(key_of(prefix, table)).query(connection)?;
                let record = |(key, value)| Record { table, key, value };
                records.extend(pairs.into_iter().map(record));
            }
            lease.expects_state = !records.is_empty();
            Ok(records)
        })
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), PersistError> {
        self.with(PATIENCE, |connection, lease, prefix| {
            let mut pipe = Pipeline::new();
            pipe.atomic();
            for change in changes {
                let (table, key) = change.place();
                let hash = key_of(prefix, table);
                match change {
                    Change::Put(record) => pipe.cmd("HSET").arg(hash).arg(key).arg(&record.value),
                    Change::Delete { .. } => pipe.cmd("HDEL").arg(hash).arg(key),
                };
            }
            let all = changes.iter().any(names_the_cluster);
            lease.commit(connection, &key_of(prefix, Table::Meta), pipe, all)
        })
    }

    fn tend(&mut self) -> Result<(), PersistError> {
        self.with(PATIENCE, |connection, lease, prefix| {
            let mut pipe = Pipeline::new();
            pipe.atomic();
            lease.commit(connection, &key_of(prefix, Table::Meta), pipe, false)
        })
    }

    fn tend_every(&self) -> Duration {
        lease::RENEW_EVERY
    }

    fn lasts(&self) -> Option<Duration> {
        Some(lease::LASTS)
    }

    fn announce(&mut self, head: &Head) -> Result<Vec<String>, PersistError> {
        self.announced = Some(head.address.clone());
        self.with(PATIENCE, |connection, _, prefix| heads::reigns(connection, prefix, head))
    }

    fn describe(&self) -> String {
        self.described.clone()
    }
}

impl Drop for Redis {
    /// Lets the next one begin at once.
    fn drop(&mut self) {
        if let Some(connection) = &mut self.connection {
            if let Some(address) = &self.announced {
                heads::leaves(connection, &self.prefix, address);
            }
            self.lease.release(connection);
        }
    }
}

/// Sends commands, and reads their answers up to the first that is an error or
/// does not come. (The library's own way reads on, and waits again for each.)
fn ask(connection: &mut Connection, commands: &Pipeline) -> Result<Vec<Value>, RedisError> {
    let around = if commands.is_transaction() { 2 } else { 0 };
    connection.send_packed_command(&commands.get_packed_pipeline())?;
    let answers = (0..commands.len() + around).map(|_| connection.recv_response()?.extract_error());
    answers.collect()
}

fn key_of(prefix: &str, table: Table) -> String {
    format!("{prefix}{}", table.name())
}

/// What is written first of all, and when everything is written anew.
fn names_the_cluster(change: &Change) -> bool {
    matches!(change, Change::Put(record) if record.table == Table::Meta && record.key == b"cluster")
}

/// Takes `cluster=NAME` out of a URL.
fn split_name(url: &str) -> Result<(String, String), String> {
    let mut url = Url::parse(url).map_err(|error| error.to_string())?;
    let mut name = "default".to_owned();
    let mut rest = Vec::new();
    for (key, value) in url.query_pairs() {
        match &*key {
            "cluster" => name = value.into_owned(),
            _ => rest.push((key.into_owned(), value.into_owned())),
        }
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(fits) {
        return Err("the cluster's name must be letters, digits, `-`, `_` and `.`".into());
    }
    url.set_query(None);
    if !rest.is_empty() {
        url.query_pairs_mut().extend_pairs(rest);
    }
    Ok((url.into(), name))
}

/// Without the repetitions of the library's own words.
fn in_words(error: &RedisError) -> String {
    if error.is_timeout() {
        return "it does not answer".into();
    }
    let text = match error.detail() {
        Some(detail) => detail.to_owned(),
        // `What went wrong - KindOfError`: the second half is for programmers.
        None => error.to_string().split(" - ").next().unwrap_or_default().to_owned(),
    };
    text.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_out_of_the_url() {
        let split = |url| split_name(url).unwrap();
        assert_eq!(split("redis://h:1/2"), ("redis://h:1/2".into(), "default".into()));
        let (url, name) = split("redis://:p@h/?cluster=prod-1&protocol=resp3");
        assert_eq!((&url[..], &name[..]), ("redis://:p@h/?protocol=resp3", "prod-1"));
        assert!(split_name("redis://h/?cluster=a{b").is_err());
    }
}
