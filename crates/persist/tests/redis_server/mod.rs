//! A real `redis-server` for a test, on a port of its own.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Nobody uses it at this moment.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

pub(crate) struct RedisServer {
    child: Child,
    port: u16,
    password: String,
}

impl RedisServer {
    /// None, and a message, where there is none; with `CI=1` that is a failure.
    pub(crate) fn start(password: &str) -> Option<Self> {
        let found = ["/usr/bin/redis-server", "/usr/local/bin/redis-server"];
        let on_path = std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path).any(|dir| dir.join("redis-server").exists())
        });
        if !on_path && !found.iter().any(|path| Path::new(path).exists()) {
            let message = "redis-server is not installed: `apt-get install redis-server`";
            assert!(std::env::var("CI").as_deref() != Ok("1"), "{message}");
            eprintln!("SKIPPED: {message}");
            return None;
        }
        let port = free_port();
        let child = spawn(port, password);
        let server = Self { child, port, password: password.into() };
        server.wait();
        Some(server)
    }

    fn wait(&self) {
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(10), "redis-server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn at(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn url(&self) -> String {
        let mut url = url::Url::parse(&format!("redis://{}", self.at())).expect("a URL");
        if !self.password.is_empty() {
            url.set_password(Some(&self.password)).expect("can have one");
        }
        url.to_string().trim_end_matches('/').into()
    }

    pub(crate) fn connect(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).expect("a URL");
        client.get_connection().expect("connects")
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("is sent");
    }

    pub(crate) fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Without what it had.
    pub(crate) fn start_again(&mut self) {
        self.child = spawn(self.port, &self.password);
        self.wait();
    }
}

fn spawn(port: u16, password: &str) -> Child {
    let port = port.to_string();
    let mut command = Command::new("redis-server");
    command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    command.args(["--dir", "/tmp"]);
    if !password.is_empty() {
        command.args(["--requirepass", password]);
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("redis-server starts")
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}
