//! Who uses the state in Redis: a key that expires unless it is renewed.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use ::redis::{Connection, Pipeline, RedisError, Value, cmd, from_redis_value};

use super::{Trouble, ask};

/// How long the lease outlives its holder, in milliseconds.
const OUTLIVES_MS: u64 = 6_000;
/// How often to look whether a holder renews its lease, which it does every second or so.
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
    own: Holder,
    /// There was something kept, and must be.
    pub(super) expects_state: bool,
}

impl Lease {
    pub(super) fn new(key: String, own: Holder) -> Self {
        Self { key, own, expects_state: false }
    }

    /// Takes the lease when nobody has it, or who had it is gone.
    pub(super) fn acquire(&self, connection: &mut Connection) -> Result<(), Trouble> {
        let begun = Instant::now();
        let mut shortest = u64::MAX;
        loop {
            if self.take(connection)? {
                return Ok(());
            }
            let holder: Option<String> = cmd("GET").arg(&self.key).query(connection)?;
            let left: i64 = cmd("PTTL").arg(&self.key).query(connection)?;
            let Some(text) = holder else { continue };
            let holder = Holder::parse(&text);
            if holder.as_ref() == Some(&self.own) {
                return Ok(());
            }
            if holder.as_ref().is_some_and(Holder::is_gone) {
                self.take_from(connection, &text)?;
                continue;
            }
            // What is left only shrinks, unless the holder lives.
            let left = u64::try_from(left).unwrap_or(u64::MAX);
            let renewed = left > shortest.saturating_add(100);
            if renewed || begun.elapsed() > Duration::from_millis(2 * OUTLIVES_MS) {
                let by = holder.map_or(text, |holder| holder.to_string());
                return Err(Trouble::Taken(by));
            }
            shortest = shortest.min(left);
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn take(&self, connection: &mut Connection) -> Result<bool, Trouble> {
        let mut set = cmd("SET");
        set.arg(&self.key).arg(self.own.text()).arg("NX").arg("PX").arg(OUTLIVES_MS);
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

    /// Looks whether the lease is ours, and from now on watches it.
    fn check(&self, connection: &mut Connection, meta: &str, all: bool) -> Result<(), Trouble> {
        let mut look = Pipeline::new();
        look.cmd("WATCH").arg(&self.key).cmd("GET").arg(&self.key);
        look.cmd("HEXISTS").arg(meta).arg("cluster");
        let answers = ask(connection, &look)?;
        let (_, holder, there): ((), Option<String>, bool) =
            from_redis_value(Value::Array(answers)).map_err(RedisError::from)?;
        match holder {
            Some(text) if text == self.own.text() => {}
            Some(text) => {
                let by = Holder::parse(&text).map_or(text, |holder| holder.to_string());
                return Err(Trouble::Taken(by));
            }
            None => {
                // It expired while we or Redis were away, and nobody else took it.
                let () = cmd("UNWATCH").query(connection)?;
                self.acquire(connection)?;
                let () = cmd("WATCH").arg(&self.key).query(connection)?;
            }
        }
        if self.expects_state && !there && !all {
            let () = cmd("UNWATCH").query(connection)?;
            return Err(Trouble::Emptied);
        }
        Ok(())
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
