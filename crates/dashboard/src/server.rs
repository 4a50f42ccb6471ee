//! Connections: how many there may be, how long they may say nothing, and when nobody looks.
//! What they are spoken in, `door` says.

use std::io;
use std::net::TcpListener;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::app::App;
use crate::crowd::{Crowd, Known};
use crate::door::{Door, Spoken, Way};

/// What connections may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long nobody may be connected until this ends.
    pub(crate) idle: Duration,
    /// Connections at a time; more than a thousand open pages.
    pub(crate) connections: usize,
    /// Of those, how many that have not shown the token.
    pub(crate) strangers: usize,
    /// How long the head of a request may take, and how long a connection may wait for the next.
    pub(crate) patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60),
            connections: 4096,
            strangers: 512,
            patience: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// How long nobody may be connected is set by a variable.
    pub(crate) fn from_environment() -> Self {
        let idle = oxiray_settings::DASHBOARD_IDLE_S.number(0.0..=1e9).ok();
        let idle = idle.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let limits = Self::default();
        Self { idle: idle.unwrap_or(limits.idle), ..limits }
    }
}

/// Each page keeps a connection.
pub(crate) fn allow_many_connections() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Serves until nobody has been connected for a while.
pub(crate) async fn serve(
    listener: TcpListener,
    app: App,
    door: Door,
    limits: Limits,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    let mut crowd = Crowd::new(limits.strangers);
    let mut idle_since = Instant::now();
    loop {
        let has_room = connections.len() < limits.connections;
        tokio::select! {
            accepted = listener.accept(), if has_room => match accepted {
                Ok((stream, _)) => {
                    let known = Known::default();
                    let _ = stream.set_nodelay(true);
                    let served = enter(stream, door.clone(), app.clone(), known.clone(), limits);
                    crowd.admit(known, connections.spawn(served));
                    // Those that came before have their turn, and become known.
                    tokio::task::yield_now().await;
                }
                // Too many descriptors, above all: some will be closed.
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => idle_since = Instant::now(),
            () = tokio::time::sleep_until(idle_since + limits.idle), if connections.is_empty() => {
                return Ok(());
            }
        }
    }
}

/// Whoever takes long to say in what they speak is as one who says nothing.
async fn enter(stream: TcpStream, door: Door, app: App, known: Known, limits: Limits) {
    let way = door.way(&stream);
    match tokio::time::timeout(limits.patience, way).await {
        Ok(Ok(Way::Tls(tls))) => {
            let shaken = tokio::time::timeout(limits.patience, tls.accept(stream)).await;
            if let Ok(Ok(stream)) = shaken {
                serve_connection(stream, Spoken::Tls, app, known, limits).await;
            }
        }
        Ok(Ok(Way::Plain)) => serve_connection(stream, Spoken::Plain, app, known, limits).await,
        Ok(Ok(Way::Bare)) => serve_connection(stream, Spoken::Bare, app, known, limits).await,
        Ok(Err(_)) | Err(_) => {}
    }
}

async fn serve_connection<S: AsyncRead + AsyncWrite + Unpin + Send>(
    stream: S,
    spoken: Spoken,
    app: App,
    known: Known,
    limits: Limits,
) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (app, known) = (app.clone(), known.clone());
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(known);
            request.extensions_mut().insert(spoken);
            Ok::<_, std::convert::Infallible>(app.answer(request).await)
        }
    });
    // A browser that leaves, or says nonsense, is no news.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.patience)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
