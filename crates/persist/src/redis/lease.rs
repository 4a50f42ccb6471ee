//! Who uses the state in Redis: a key that expires unless it is renewed, and the number of its
//! *reign*, which grows each time that somebody begins to use the state. So one whose lease ran out
//! while it was away may have it back only if nobody reigned in between: what it has in memory
//! would be older than what is kept. Because of the reign the lease can be short, and a standby soon
//! has it: one that merely was slow loses nothing if nobody wanted it.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use ::redis::{Connection, Pipeline, RedisError, Value, cmd, from_redis_value};

use super::{Trouble, ask};

/// How long the lease outlives its holder, in milliseconds.
const OUTLIVES_MS: u64 = 1_500;
/// How long it lasts for one that just begins: everything that is kept is read first.
const BEGINS_MS: u64 = 10_000;
/// How long nobody else can have it after it was renewed.
pub(super) const LASTS: Duration = Duration::from_millis(OUTLIVES_MS);
/// How often it is to be renewed.
pub(super) const RENEW_EVERY: Duration = Duration::from_millis(300);
/// How often to look whether a holder renews its lease.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A process, so exactly that another of the same number is not taken for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Holder {
    host: String,
    /// Which start of which machine, and which numbering of its processes.
    machine: String,
    pid: u32,
    /// When that process was started.
    since: String,
}

impl Holder {
    /// This process.
    pub(super) fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let boot = read("/proc/sys/kernel/random/boot_id");
        let numbering = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let pid = std::process::id();
        let one_word = |text: String| text.replace(char::is_whitespace, "_");
        Self {
            host: one_word(read("/proc/sys/kernel/hostname")),
            machine: one_word(format!("{boot}/{}", numbering.display())),
            pid,
            since: since(pid).unwrap_or_default(),
        }
    }

    /// Whether it is known that it is gone: nothing is known of other machines.
    fn is_gone(&self) -> bool {
        self.machine == Self::this().machine && since(self.pid).as_ref() != Some(&self.since)
    }

    fn text(&self) -> String {
        format!("{} {} {} {}", self.host, self.machine, self.pid, self.since)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ').map(str::to_owned);
        let (host, machine) = (words.next()?, words.next()?);
        Some(Self { host, machine, pid: words.next()?.parse().ok()?, since: words.next()? })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.host, self.pid)
    }
}

/// What is kept of a holder, for people.
fn in_words(text: String) -> String {
    Holder::parse(&text).map_or(text, |holder| holder.to_string())
}

/// When a process was started, in the kernel's count.
fn since(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let after = &stat[stat.rfind(')')? + 1..];
    let mut words = after.split_whitespace();
    // A zombie has ended.
    if words.next() == Some("Z") {
        return None;
    }
    words.nth(18).map(str::to_owned)
}

pub(super) struct Lease {
    key: String,
    /// Where the number of the latest reign is.
    reign_key: String,
    own: Holder,
    /// Ours.
    reign: u64,
    /// There was something kept, and must be.
    pub(super) expects_state: bool,
}

/// What is there.
struct Seen {
    holder: Option<String>,
    reign: Option<u64>,
    has_state: bool,
}

impl Lease {
    /// Of the keys that begin with `prefix`.
    pub(super) fn new(prefix: &str, own: Holder) -> Self {
        let (key, reign_key) = (format!("{prefix}lease"), format!("{prefix}reign"));
        Self { key, reign_key, own, reign: 0, expects_state: false }
    }

    /// Begins a reign, when nobody has the lease or who had it is gone.
    pub(super) fn begin(&mut self, connection: &mut Connection) -> Result<(), Trouble> {
        self.acquire(connection, BEGINS_MS)?;
        self.reign = cmd("INCR").arg(&self.reign_key).query(connection)?;
        Ok(())
    }

    /// Begins a reign if that can be at once: whether it did.
    pub(super) fn begin_if_free(&mut self, connection: &mut Connection) -> Result<bool, Trouble> {
        if self.attempt(connection, BEGINS_MS)?.is_some() {
            return Ok(false);
        }
        self.reign = cmd("INCR").arg(&self.reign_key).query(connection)?;
        Ok(true)
    }

    /// Whether somebody who is not known to be gone has the lease after all of `patience`.
    pub(super) fn is_held_for(
        &self,
        connection: &mut Connection,
        patience: Duration,
    ) -> Result<bool, Trouble> {
        let until = Instant::now() + patience;
        loop {
            let text: Option<String> = cmd("GET").arg(&self.key).query(connection)?;
            let lives = |text: &String| Holder::parse(text).is_none_or(|holder| !holder.is_gone());
            match text.filter(lives) {
                None => return Ok(false),
                Some(_) if Instant::now() >= until => return Ok(true),
                Some(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    /// Takes the lease when nobody has it, or who had it is gone.
    fn acquire(&self, connection: &mut Connection, lasts_ms: u64) -> Result<(), Trouble> {
        let begun = Instant::now();
        let mut shortest = u64::MAX;
        while let Some(text) = self.attempt(connection, lasts_ms)? {
            let left: i64 = cmd("PTTL").arg(&self.key).query(connection)?;
            // What is left only shrinks, unless the holder lives.
            let left = u64::try_from(left).unwrap_or(u64::MAX);
            let renewed = left > shortest.saturating_add(100);
            if renewed || begun.elapsed() > Duration::from_millis(BEGINS_MS + OUTLIVES_MS) {
                return Err(Trouble::Taken(in_words(text)));
            }
            shortest = shortest.min(left);
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Takes the lease if it can be had at once; else who has it.
    fn attempt(&self, connection: &mut Connection, ms: u64) -> Result<Option<String>, Trouble> {
        loop {
            if self.take(connection, ms)? {
                return Ok(None);
            }
            let holder: Option<String> = cmd("GET").arg(&self.key).query(connection)?;
            let Some(text) = holder else { continue };
            let holder = Holder::parse(&text);
            if holder.as_ref() == Some(&self.own) {
                return Ok(None);
            }
            if !holder.is_some_and(|holder| holder.is_gone()) {
                return Ok(Some(text));
            }
            self.take_from(connection, &text)?;
        }
    }

    fn take(&self, connection: &mut Connection, lasts_ms: u64) -> Result<bool, Trouble> {
        let mut set = cmd("SET");
        set.arg(&self.key).arg(self.own.text()).arg("NX").arg("PX").arg(lasts_ms);
        let taken: Option<String> = set.query(connection)?;
        Ok(taken.is_some())
    }

    /// Ends the lease of one that is gone, unless it is another's by now.
    fn take_from(&self, connection: &mut Connection, gone: &str) -> Result<(), Trouble> {
        let () = cmd("WATCH").arg(&self.key).query(connection)?;
        let holder: Option<String> = cmd("GET").arg(&self.key).query(connection)?;
        if holder.as_deref() != Some(gone) {
            let () = cmd("UNWATCH").query(connection)?;
            return Ok(());
        }
        let mut delete = Pipeline::new();
        delete.atomic().cmd("DEL").arg(&self.key);
        ask(connection, &delete)?;
        Ok(())
    }

    /// Does what `pipe` says, and renews the lease, if the lease is ours. `all`:
    /// it writes everything anew.
    pub(super) fn commit(
        &mut self,
        connection: &mut Connection,
        meta: &str,
        mut pipe: Pipeline,
        all: bool,
    ) -> Result<(), Trouble> {
        pipe.cmd("PEXPIRE").arg(&self.key).arg(OUTLIVES_MS);
        // A Redis that lost what it had may have lost that, too.
        pipe.cmd("SET").arg(&self.reign_key).arg(self.reign);
        // Twice: the lease may expire, or be taken anew, between looking and writing.
        for _ in 0..2 {
            self.check(connection, meta, all)?;
            if ask(connection, &pipe)?.last() != Some(&Value::Nil) {
                self.expects_state |= all;
                return Ok(());
            }
        }
        Err(Trouble::Taken("another machine".into()))
    }

    /// Looks whether the lease and the reign are ours, and from now on watches both.
    fn check(&self, connection: &mut Connection, meta: &str, all: bool) -> Result<(), Trouble> {
        let mut seen = self.look(connection, meta)?;
        if seen.holder.is_none() {
            // It expired while we or Redis were away.
            let () = cmd("UNWATCH").query(connection)?;
            self.acquire(connection, OUTLIVES_MS)?;
            seen = self.look(connection, meta)?;
        }
        let trouble = match seen.holder {
            Some(text) if text != self.own.text() => Trouble::Taken(in_words(text)),
            _ if seen.reign > Some(self.reign) => {
                self.release(connection);
                Trouble::Succeeded
            }
            _ if self.expects_state && !seen.has_state && !all => Trouble::Emptied,
            _ => return Ok(()),
        };
        let () = cmd("UNWATCH").query(connection)?;
        Err(trouble)
    }

    fn look(&self, connection: &mut Connection, meta: &str) -> Result<Seen, Trouble> {
        let mut look = Pipeline::new();
        look.cmd("WATCH").arg(&self.key).arg(&self.reign_key);
        look.cmd("GET").arg(&self.key).cmd("GET").arg(&self.reign_key);
        look.cmd("HEXISTS").arg(meta).arg("cluster");
        let answers = ask(connection, &look)?;
        let ((), holder, reign, has_state) =
            from_redis_value(Value::Array(answers)).map_err(RedisError::from)?;
        Ok(Seen { holder, reign, has_state })
    }

    /// Gives the lease back, if it is ours.
    pub(super) fn release(&self, connection: &mut Connection) {
        let _ = self.take_from(connection, &self.own.text());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_knows_itself_and_who_is_gone() {
        let this = Holder::this();
        assert_eq!(Holder::parse(&this.text()), Some(this.clone()));
        assert!(!this.is_gone());
        assert!(Holder { since: "1".into(), ..this.clone() }.is_gone(), "another of that number");
        assert!(!Holder { machine: "x".into(), since: "1".into(), ..this }.is_gone());
        assert_eq!(Holder::parse("what"), None);
    }
}
