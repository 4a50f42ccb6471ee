//! Jobs that are handed in from outside, by Ray's own REST paths: `/api/jobs/…`, the packages they
//! bring (`/api/packages/…`), and `/api/version`.
//!
//! The dashboard only looks. What is asked about jobs a *clerk* answers: a process of the cluster's
//! Python that is connected to it as a program is (`oxiray._job_clerk`). It is started by the first
//! question and ends with this process, once no job of it is about to begin. Question and answer
//! are a line of JSON each.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path as InPath, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::StreamExt;
use oxiray_observe::Resource;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::app::Tools;
use crate::reply::{Fault, json_reply};
use crate::source::Answer;

/// How long the clerk may take: it asks the cluster, and its first start imports Python.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of a package's name.
const LONGEST_NAME: usize = 255;

/// The clerk, and where its session is.
#[derive(Clone)]
pub(crate) struct Jobs {
    session: PathBuf,
    clerk: Arc<Mutex<Option<Clerk>>>,
}

impl Jobs {
    pub(crate) fn new(session: &Path) -> Self {
        Self { session: session.to_owned(), clerk: Arc::default() }
    }

    async fn ask(&self, question: Value) -> Answer<Response> {
        let jobs = self.clone();
        let answered = tokio::task::spawn_blocking(move || jobs.ask_and_wait(&question)).await;
        let answer = answered.map_err(io::Error::other)?.map_err(|error| {
            let why = format!("Nobody answers for jobs: {error}");
            Fault::new(StatusCode::SERVICE_UNAVAILABLE, why)
        })?;
        let status = answer["status"].as_u64().and_then(|code| u16::try_from(code).ok());
        let status = status.and_then(|code| StatusCode::from_u16(code).ok());
        Ok(json_reply(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &answer["body"]))
    }

    fn ask_and_wait(&self, question: &Value) -> io::Result<Value> {
        let mut clerk = self.clerk.lock();
        if clerk.as_mut().is_some_and(Clerk::has_ended) {
            *clerk = None;
        }
        let is_known = clerk.is_some();
        let mut asked = self.ask_clerk(&mut clerk, question);
        // One that is killed at this moment is not seen to be gone before it is asked. What it was
        // asked to take in it may have taken.
        if is_known && asked.is_err() && question["verb"] != "submit" {
            asked = self.ask_clerk(&mut clerk, question);
        }
        asked
    }

    fn ask_clerk(&self, clerk: &mut Option<Clerk>, question: &Value) -> io::Result<Value> {
        let asked = match clerk.as_mut() {
            Some(clerk) => clerk.ask(question),
            None => clerk.insert(Clerk::start(&self.session)?).ask(question),
        };
        if asked.is_err() {
            *clerk = None; // The next question starts another.
        }
        asked
    }
}

struct Clerk {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Clerk {
    fn start(session: &Path) -> io::Result<Self> {
        let python = oxiray_settings::PYTHON.text();
        let python = python.unwrap_or_else(|| oxiray_settings::PYTHON.default.into());
        let mut child = Command::new(python)
            .args(["-m", "oxiray._job_clerk"])
            .arg(session)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It outlives this process while a job is about to begin.
            .process_group(0)
            .spawn()?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("it was started without pipes"));
        };
        Ok(Self { child, questions, answers: BufReader::new(answers) })
    }

    /// Whether it was killed, say: then what is asked now is a question for another.
    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn ask(&mut self, question: &Value) -> io::Result<Value> {
        writeln!(self.questions, "{question}")?;
        let until = Instant::now() + PATIENCE;
        // A line is written at once, so that what has begun to come has come.
        while self.answers.buffer().is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let _ = self.child.kill();
                return Err(io::ErrorKind::TimedOut.into());
            }
            let wait = Timespec::try_from(left).map_err(io::Error::other)?;
            let mut polled = [PollFd::new(self.answers.get_ref(), PollFlags::IN)];
            match poll(&mut polled, Some(&wait)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(io::Error::other("its process ended; the log of the dashboard says why"));
        }
        serde_json::from_str(&line).map_err(io::Error::other)
    }
}

impl Drop for Clerk {
    /// It ends when its questions do; its status is taken so that nothing of it is left.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            tracing::info!(pid = self.child.id(), "the clerk of jobs is left to end by itself");
        }
    }
}

/// Ray's paths.
pub(crate) fn router() -> Router<Tools> {
    Router::new()
        .route("/api/version", get(version))
        .route("/api/packages/{protocol}/{name}", get(has_package).put(put_package))
        .route("/api/jobs/", get(list).post(submit))
        .route("/api/jobs/{id}", get(one).delete(delete))
        .route("/api/jobs/{id}/stop", post(stop))
        .route("/api/jobs/{id}/logs", get(logs))
}

type Tool = State<Tools>;

async fn version(State(tools): Tool) -> Answer<Response> {
    tools.jobs.ask(json!({ "verb": "version" })).await
}

async fn list(State(tools): Tool) -> Answer<Response> {
    tools.jobs.ask(json!({ "verb": "list" })).await
}

async fn submit(State(tools): Tool, body: Bytes) -> Answer<Response> {
    let wanted: Value = serde_json::from_slice(&body)
        .map_err(|error| Fault::bad(format!("The body is not JSON: {error}")))?;
    tools.jobs.ask(json!({ "verb": "submit", "wanted": wanted })).await
}

/// A job that was handed in; or, by its number, any program's as lists have it.
async fn one(State(tools): Tool, InPath(id): InPath<String>) -> Answer<Response> {
    if id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let row = tools.desk.ask(move |source| source.get(Resource::Jobs, &id)).await?;
        let row =
            row.ok_or_else(|| Fault::unknown("There is no such job; it may be forgotten."))?;
        return Ok(json_reply(StatusCode::OK, &row));
    }
    tools.jobs.ask(json!({ "verb": "info", "id": id })).await
}

async fn delete(State(tools): Tool, InPath(id): InPath<String>) -> Answer<Response> {
    tools.jobs.ask(json!({ "verb": "delete", "id": id })).await
}

async fn stop(State(tools): Tool, InPath(id): InPath<String>) -> Answer<Response> {
    tools.jobs.ask(json!({ "verb": "stop", "id": id })).await
}

/// What its driver has printed; `after` is where an earlier answer ended.
async fn logs(
    State(tools): Tool,
    InPath(id): InPath<String>,
    RawQuery(query): RawQuery,
) -> Answer<Response> {
    let query = query.unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let after = pairs.find(|(name, _)| name == "after").map(|(_, value)| value.into_owned());
    tools.jobs.ask(json!({ "verb": "logs", "id": id, "after": after })).await
}

/// Where a package of this node is, if that can be its name.
fn package(tools: &Tools, protocol: &str, name: &str) -> Answer<PathBuf> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
    let is_name = (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with('.');
    match protocol == "gcs" && is_name {
        true => Ok(tools.jobs.session.join("packages").join(name)),
        false => Err(Fault::bad("A package is named gcs/NAME, of letters, digits and `._-+`.")),
    }
}

async fn has_package(
    State(tools): Tool,
    InPath((protocol, name)): InPath<(String, String)>,
) -> Answer<Response> {
    match package(&tools, &protocol, &name)?.is_file() {
        true => Ok(json_reply(StatusCode::OK, &json!({}))),
        false => Err(Fault::unknown("There is no such package here.")),
    }
}

/// Keeps a package that a job brings, on this node; it is there whole or not at all.
async fn put_package(
    State(tools): Tool,
    InPath((protocol, name)): InPath<(String, String)>,
    body: Body,
) -> Answer<Response> {
    let path = package(&tools, &protocol, &name)?;
    let folder = tools.jobs.session.join("packages");
    std::fs::create_dir_all(&folder)?;
    let draft = folder.join(format!(".{name}.{}", std::process::id()));
    let kept = keep(body, &draft).await;
    let kept = match kept {
        Ok(()) => std::fs::rename(&draft, &path).map_err(Fault::from),
        Err(fault) => Err(fault),
    };
    if kept.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    kept.map(|()| json_reply(StatusCode::OK, &json!({})))
}

async fn keep(body: Body, draft: &Path) -> Answer<()> {
    // With room for what an archive has beside its files.
    let most = oxiray_settings::PACKAGE_MAX_BYTES
        .count()
        .map_err(|error| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?
        + (64 << 20);
    let mut file = oxiray_session::private_file(
        std::fs::OpenOptions::new().create(true).write(true).truncate(true),
        draft,
    )?;
    let mut pieces = body.into_data_stream();
    let mut kept = 0u64;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| Fault::bad(format!("The body ended early: {error}")))?;
        kept += piece.len() as u64;
        if kept > most {
            let why = "The package is larger than OXIRAY_PACKAGE_MAX_BYTES of this node.";
            return Err(Fault::new(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        file.write_all(&piece)?;
    }
    Ok(())
}
