//! The dashboard of a session or a cluster: pages, their data, and what other tools ask for.
//!
//! A process of its own, `oxirayd dashboard`. The node service starts it when somebody connects to
//! the dashboard's port, and it ends when nobody has for a minute; see `activation` in
//! `crates/daemon`. It reads what `oxiray-observe` gives, as `oxiray list` does; by it a task may be
//! cancelled and an actor ended, and else it only looks.
//!
//! - `server`: connections, how many, and for how long; `crowd`: who of the unknown must go
//! - `door`: with TLS, or without; `guard`, `hosts`: who is answered
//! - `app`: from a request to its answer; `reply`: what every answer has
//! - `routes`: what there is to ask, written once for the router and the OpenAPI page alike;
//!   `arguments`: what a request gave, checked by that; `openapi`: the page's document
//! - `api`: the answers; `desk`: the one reader that all of them share
//! - `live`: changes, as they happen; `tails`: logs, as they grow
//! - `metrics`: for Prometheus; `py_spy`: stacks and flame graphs
//! - `jobs`: jobs that are handed in, by Ray's paths; a process of its own answers for them
//! - `pages`: the files of the user interface
//! - `source`: what all of this needs to know of a session; `observed`: from where

mod api;
mod app;
mod arguments;
mod crowd;
mod desk;
mod door;
mod guard;
mod hosts;
mod jobs;
mod live;
mod metrics;
mod observed;
mod openapi;
mod pages;
mod py_spy;
mod reply;
mod routes;
mod server;
mod source;
mod tails;
#[cfg(test)]
mod tests;
mod user_metrics;

use std::io;
use std::net::TcpListener;
use std::path::PathBuf;

use oxiray_session::Session;
use oxiray_sys::process::inherited_fd;

use app::App;
use desk::Desk;
use door::Door;
use guard::Guard;
use hosts::Hosts;
use jobs::Jobs;
use observed::Observed;
use server::Limits;

/// What the node service says of the session.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its directory.
    pub session_dir: PathBuf,
    /// The name that the dashboard was asked to be served at; empty: it was given none.
    pub host: String,
    /// Version of the workers' Python.
    pub python_version: String,
}

/// Serves the listening socket `fd` until nobody has looked for a while, or whoever started this
/// is gone: then standard input ends.
pub fn run(fd: i32, options: Options) -> io::Result<()> {
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false);
    // Where standard error takes nothing, complaining there about that would panic.
    log.log_internal_errors(false).init();
    end_with_stdin()?;
    server::allow_many_connections();
    let listener = TcpListener::from(inherited_fd(fd)?);
    let address = listener.local_addr()?;
    let session = Session::at(&options.session_dir)?;
    let token = session.dashboard_token()?;
    let door = Door::of(&session, &token)?;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let hosts = Hosts::new(address.ip(), &options.host, &machine);
    let guard = Guard::new(token, address.port(), hosts);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let source = Observed::open(&options).map_err(io::Error::other)?;
        let app = App::new(guard, Desk::new(Box::new(source)), Jobs::new(&options.session_dir));
        server::serve(listener, app, door, Limits::from_environment()).await
    })
}

/// This process leads its group, in which py-spy may run, too.
fn end_with_stdin() -> io::Result<()> {
    let wait = || {
        let mut byte = [0];
        while matches!(rustix::io::read(rustix::stdio::stdin(), &mut byte), Ok(1..)) {}
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::KILL);
        oxiray_sys::process::exit_now(1);
    };
    std::thread::Builder::new().name("starter".into()).spawn(wait).map(|_| ())
}
