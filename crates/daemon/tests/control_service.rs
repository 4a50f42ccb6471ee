//! A real `oxirayd control`, spoken to over its port: what it keeps over a kill,
//! whom it lets in, and what it does while its store is away.

use std::fs::DirBuilder;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use oxiray_ids::{ActorId, JobId, ProcessId};
use oxiray_net::{Identity, Keyring, Link, LinkError, Secret, Security};
use oxiray_wire::cluster::{
    ControlConfig, FromControl, Hello, Join, Kv, KvVerb, NodeInfo, OfProcess, Pong, Purpose, State,
    ToControl, Welcome, from_control, to_control,
};
use oxiray_wire::control::{Amount, CreateActor, Empty, UNIT, to_node};
use prost::Message;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const PATIENCE: Duration = Duration::from_secs(20);

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A control service, and the directory with everything of it.
struct Control {
    dir: PathBuf,
    port: u16,
    store: String,
    child: Option<Child>,
}

impl Control {
    /// One that is not started yet; `store` is in its directory unless it is a URL.
    fn new(store: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir =
            std::env::temp_dir().join(format!("oxiray-control-{}-{number}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&dir).unwrap();
        Keyring::new(Secret::generate()).save(&dir.join("keyring")).unwrap();
        let store = if store.contains(':') {
            store.to_owned()
        } else {
            dir.join(store).display().to_string()
        };
        Self { dir, port: free_port(), store, child: None }
    }

    fn started(store: &str) -> Self {
        let mut control = Self::new(store);
        assert_eq!(control.start(), format!("ready 127.0.0.1:{}", control.port));
        control
    }

    /// Starts it; the line that it says.
    fn start(&mut self) -> String {
        let config = ControlConfig {
            listen: format!("127.0.0.1:{}", self.port),
            keyring: self.dir.join("keyring").display().to_string(),
            store: self.store.clone(),
            home: self.dir.display().to_string(),
            address: format!("127.0.0.1:{}", self.port),
            health: None,
            standby: false,
        };
        let file = self.dir.join("config");
        std::fs::write(&file, config.encode_to_vec()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_oxirayd"))
            .args(["control", "--config"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        self.child = Some(child);
        line.trim_end().to_owned()
    }

    fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn security(&self) -> Security {
        security(&self.dir.join("keyring"))
    }

    fn connect(&self, purpose: Purpose) -> Client {
        Client::new(self.port, &self.security(), purpose, oxiray_wire::VERSION)
    }

    fn tool(&self) -> Client {
        self.connect(Purpose::Tool)
    }

    /// A node joins, for the first time or again.
    fn join(&self, id: u8, again: Option<&Welcome>) -> (Client, Welcome) {
        let total = vec![Amount { name: "CPU".into(), amount: 4 * UNIT }];
        let node = NodeInfo {
            id: vec![id; 28],
            number: again.map_or(0, |welcome| welcome.number),
            address: "127.0.0.1:1".into(),
            total,
            python: "3.11".into(),
            ..NodeInfo::default()
        };
        let cluster = again.map_or_else(Vec::new, |welcome| welcome.cluster.clone());
        let mut client = self.connect(Purpose::Control);
        client.say(to_control::Body::Join(Join { node: Some(node), cluster, ..Join::default() }));
        let welcome = client.wait(|body| match body {
            from_control::Body::Welcome(welcome) => Some(welcome),
            from_control::Body::Refused(text) => panic!("{}", text.text),
            _ => None,
        });
        (client, welcome)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn security(keyring: &Path) -> Security {
    Security::Tls(Identity::new(&Keyring::load(keyring).unwrap()).unwrap())
}

/// A connection that answers pings by itself.
struct Client {
    link: Link,
    heard: Vec<from_control::Body>,
    pings: usize,
}

impl Client {
    fn new(port: u16, security: &Security, purpose: Purpose, version: u32) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut link = Link::connect(address, security).unwrap();
        let mut hello = Hello { version, ..Hello::default() };
        hello.set_purpose(purpose);
        link.send(&[&hello.encode_to_vec()]).unwrap();
        Self { link, heard: Vec::new(), pings: 0 }
    }

    fn say(&mut self, body: to_control::Body) {
        self.link.send(&[&ToControl::from(body).encode_to_vec()]).unwrap();
        let _ = self.link.flush();
    }

    /// Waits a moment for something to come.
    fn look(&mut self) -> Result<(), LinkError> {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, self.link.wants_write());
        let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let _ = poll(&mut [PollFd::new(&self.link, flags)], Some(&moment));
        let heard = &mut self.heard;
        let before = heard.len();
        let done = self.link.on_ready(&mut |frame| {
            heard.push(FromControl::decode(frame).unwrap().body.unwrap());
            ControlFlow::Continue(())
        });
        for index in before..self.heard.len() {
            if matches!(self.heard[index], from_control::Body::Ping(_)) {
                self.pings += 1;
                self.say(to_control::Body::Pong(Pong::default()));
            }
        }
        done.map(|_| ())
    }

    /// The first thing that was heard, or will be, of which `find` makes something.
    fn wait<T>(&mut self, find: impl Fn(from_control::Body) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            while !self.heard.is_empty() {
                if let Some(found) = find(self.heard.remove(0)) {
                    return found;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "nothing of the kind was heard");
            // The last thing that is said may come together with the end.
            let looked = self.look();
            if self.heard.is_empty() {
                looked.unwrap();
            }
        }
    }

    fn wait_for_end(&mut self) {
        let begun = Instant::now();
        while self.look().is_ok() {
            assert!(begun.elapsed() < PATIENCE, "the connection does not end");
        }
    }

    fn kv(&mut self, verb: KvVerb, key: &str, value: Option<&str>) -> Kv {
        self.say(kv(verb, key, value));
        self.wait(|body| match body {
            from_control::Body::Kv(answer) => Some(answer),
            _ => None,
        })
    }

    fn see(&mut self) -> State {
        self.say(to_control::Body::See(Empty {}));
        self.wait(|body| match body {
            from_control::Body::State(state) => Some(state),
            _ => None,
        })
    }
}

fn kv(verb: KvVerb, key: &str, value: Option<&str>) -> to_control::Body {
    to_control::Body::Kv(Kv {
        verb: verb.into(),
        key: key.into(),
        value: value.map(Into::into),
        wide: true,
        ..Kv::default()
    })
}

fn creates_actor(body: from_control::Body) -> Option<Vec<u8>> {
    let from_control::Body::OfProcess(said) = body else { return None };
    match said.message?.body? {
        to_node::Body::CreateActor(create) => Some(create.actor),
        _ => None,
    }
}

/// Everything that a control service was told is there after it was killed.
fn outlives_a_kill(mut control: Control) {
    let (mut node, welcome) = control.join(1, None);
    let creator = ProcessId::new(welcome.number, 1);
    let actor = ActorId::new(JobId([1; 4]), creator, 1).0.to_vec();
    let create = CreateActor { actor: actor.clone(), ..CreateActor::default() };
    let message = Some(to_node::Body::CreateActor(create).into());
    let said = OfProcess { process: creator.0, message, ..OfProcess::default() };
    node.say(to_control::Body::OfProcess(said));
    assert_eq!(node.wait(creates_actor), actor);
    assert_eq!(control.tool().kv(KvVerb::Put, "k", Some("v")).count, 1);
    control.kill();
    node.wait_for_end();
    assert!(control.start().starts_with("ready"));
    let (mut node, again) = control.join(1, Some(&welcome));
    assert_eq!((again.number, &again.cluster), (welcome.number, &welcome.cluster));
    assert_eq!(node.wait(creates_actor), actor, "it is not there: it is made again");
    let value = control.tool().kv(KvVerb::Get, "k", None).value;
    assert_eq!(value.as_deref(), Some(&b"v"[..]));
    let state = control.tool().see();
    assert_eq!((state.nodes.len(), state.actors.len()), (1, 1));
    assert_eq!(state.store_trouble, "");
}

#[test]
fn a_kill_is_survived_by_what_is_in_a_directory() {
    outlives_a_kill(Control::started("state"));
}

#[test]
fn a_kill_is_survived_by_what_is_in_redis() {
    let Some(redis) = Redis::start() else { return };
    outlives_a_kill(Control::started(&redis.url()));
}

#[test]
fn who_has_another_token_gets_nowhere() {
    let control = Control::started("memory:");
    let foreign = control.dir.join("foreign");
    Keyring::new(Secret::generate()).save(&foreign).unwrap();
    let version = oxiray_wire::VERSION;
    let mut stranger = Client::new(control.port, &security(&foreign), Purpose::Tool, version);
    stranger.say(to_control::Body::See(Empty {}));
    stranger.wait_for_end();
    assert!(stranger.heard.is_empty());
}

#[test]
fn another_version_is_refused_in_words() {
    let control = Control::started("memory:");
    let mut other = Client::new(control.port, &control.security(), Purpose::Control, 999);
    let text = other.wait(|body| match body {
        from_control::Body::Refused(text) => Some(text.text),
        _ => None,
    });
    assert!(text.contains("version"), "{text}");
    other.wait_for_end();
}

#[test]
fn a_directory_has_one_control_service() {
    let first = Control::started("state");
    let mut second = Control::new(&format!("file:{}", first.store));
    let line = second.start();
    assert!(line.starts_with("error ") && line.contains("in use by another"), "{line}");
    assert!(!second.child.take().unwrap().wait().unwrap().success());
}

#[test]
fn without_redis_it_does_not_start_and_says_why() {
    let mut control = Control::new(&format!("redis://:secret@127.0.0.1:{}", free_port()));
    let line = control.start();
    assert!(line.starts_with("error cannot reach Redis at 127.0.0.1:"), "{line}");
    assert!(!line.contains("secret"));
}

#[test]
fn asked_to_end_it_ends() {
    let mut control = Control::started("state");
    let child = control.child.as_mut().unwrap();
    oxiray_sys::process::signal(child.id(), 15);
    assert!(child.wait().unwrap().success());
    control.child = None;
}

#[test]
fn the_token_is_changed_while_all_stay() {
    let control = Control::started("memory:");
    let (mut node, _) = control.join(1, None);
    let before = control.security();
    let mut tool = control.tool();
    tool.say(to_control::Body::Rotate(Empty {}));
    let tokens = |body| match body {
        from_control::Body::Tokens(tokens) => Some(tokens.tokens),
        _ => None,
    };
    let told = tool.wait(tokens);
    assert_eq!(told.len(), 2);
    assert_eq!(node.wait(tokens), told);
    let kept = Keyring::load(&control.dir.join("keyring")).unwrap();
    assert!(kept.secrets().map(ToString::to_string).eq(told));
    // Both may come in: the one that has the new token, and the one that has the old.
    assert_eq!(control.tool().see().nodes.len(), 1);
    let mut old = Client::new(control.port, &before, Purpose::Tool, oxiray_wire::VERSION);
    assert_eq!(old.see().nodes.len(), 1);
}

/// While the store is away members live, and what would have to be kept waits.
#[test]
fn redis_may_be_away_and_come_back_empty() {
    let Some(mut redis) = Redis::start() else { return };
    let mut control = Control::started(&redis.url());
    let (mut node, welcome) = control.join(1, None);
    let mut tool = control.tool();
    assert_eq!(tool.kv(KvVerb::Put, "a", Some("1")).count, 1);
    redis.stop();
    tool.say(kv(KvVerb::Put, "b", Some("2")));
    let begun = Instant::now();
    node.pings = 0;
    while begun.elapsed() < Duration::from_secs(5) {
        node.look().expect("it is still a member");
        tool.look().unwrap();
    }
    assert!(node.pings >= 7, "{} pings in 5 s", node.pings);
    let answered = |body: &from_control::Body| matches!(body, from_control::Body::Kv(_));
    assert!(!tool.heard.iter().any(answered), "what is not kept is not said");
    let trouble = control.tool().see().store_trouble;
    assert!(trouble.starts_with("cannot reach Redis at "), "{trouble}");
    redis.start_again();
    tool.wait(|body| answered(&body).then_some(()));
    assert_eq!(control.tool().see().store_trouble, "");
    control.kill();
    assert!(control.start().starts_with("ready"));
    let (_, again) = control.join(1, Some(&welcome));
    assert_eq!(again.number, welcome.number, "everything was written anew");
    for (key, value) in [("a", "1"), ("b", "2")] {
        let answer = control.tool().kv(KvVerb::Get, key, None);
        assert_eq!(answer.value.as_deref(), Some(value.as_bytes()));
    }
}

/// A real `redis-server` that keeps nothing when it ends.
struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    /// None, and a message, where there is none; with `CI=1` that is a failure.
    fn start() -> Option<Self> {
        let port = free_port();
        let Some(child) = Self::spawn(port) else {
            let message = "redis-server is not installed: `apt-get install redis-server`";
            assert!(std::env::var("CI").as_deref() != Ok("1"), "{message}");
            eprintln!("SKIPPED: {message}");
            return None;
        };
        Some(Self { child, port })
    }

    fn spawn(port: u16) -> Option<Child> {
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--dir", "/tmp"]).stdout(Stdio::null());
        let child = command.spawn().ok()?;
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "redis-server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(child)
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn start_again(&mut self) {
        self.child = Self::spawn(self.port).expect("was there before");
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.stop();
    }
}
