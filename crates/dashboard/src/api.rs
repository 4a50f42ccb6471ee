//! The answers of the REST API.

use std::fs::File;
use std::io::{BufWriter, Read, Seek};

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use oxiray_observe::log_stream::LogPlace;
use oxiray_observe::{Query, Resource, Sort};
use serde_json::{Value, json};

use crate::app::Tools;
use crate::arguments::Arguments;
use crate::reply::{Fault, json_reply};
use crate::source::{Answer, Piece, Window, WorkerPlace};
use crate::tails::{MOST, to_json};
use crate::{metrics as figures, openapi as schema};

const ROWS: usize = 100;
const WIDTH: u32 = 1000;
const PROFILE_SECONDS: u32 = 5;
/// Bytes of a file that are sent at a time.
const CHUNK: usize = 256 * 1024;

type Tool = State<Tools>;

fn reply(value: &Value) -> Response {
    json_reply(StatusCode::OK, value)
}

fn found<T>(value: Option<T>, what: &str) -> Answer<T> {
    value.ok_or_else(|| Fault::unknown(format!("There is no such {what}; it may be forgotten.")))
}

fn resource(arguments: &Arguments) -> Answer<Resource> {
    Ok(arguments.text("resource").parse()?)
}

pub(crate) async fn cluster(State(tools): Tool, _: Arguments) -> Answer<Response> {
    Ok(reply(&tools.desk.ask(|source| source.cluster()).await?))
}

pub(crate) async fn list(State(tools): Tool, given: Arguments) -> Answer<Response> {
    let resource = resource(&given)?;
    let filters = given.all("filter").map(str::parse).collect::<Result<_, _>>()?;
    let query = Query {
        filters,
        search: given.all("q").next().map(str::to_owned),
        sort: given.all("sort").next().map(Sort::from),
        offset: given.number("offset").unwrap_or(0),
        limit: Some(given.number("limit").unwrap_or(ROWS)),
        detail: false,
    };
    Ok(reply(&tools.desk.ask(move |source| source.list(resource, &query)).await?))
}

pub(crate) async fn one(State(tools): Tool, given: Arguments) -> Answer<Response> {
    let (resource, id) = (resource(&given)?, given.text("id"));
    let row = tools.desk.ask(move |source| source.get(resource, &id)).await?;
    Ok(reply(&found(row, "id")?))
}

pub(crate) async fn why(State(tools): Tool, given: Arguments) -> Answer<Response> {
    let task = given.text("task_id");
    let text = tools.desk.ask(move |source| source.why(&task)).await?;
    Ok(reply(&json!({ "text": found(text, "task")? })))
}

pub(crate) async fn task_log(State(tools): Tool, given: Arguments) -> Answer<Response> {
    let task = given.text("task_id");
    let log = tools.desk.ask(move |source| source.task_log(&task)).await?;
    Ok(reply(&found(log, "task")?))
}

pub(crate) async fn summary(State(tools): Tool, given: Arguments) -> Answer<Response> {
    let resource = resource(&given)?;
    Ok(reply(&tools.desk.ask(move |source| source.summary(resource)).await?))
}

pub(crate) async fn timeline(State(tools): Tool, given: Arguments) -> Answer<Response> {
    let window = Window {
        from: given.number("from"),
        to: given.number("to"),
        width: given.number("width").unwrap_or(WIDTH),
        search: given.text("q"),
    };
    Ok(reply(&tools.desk.ask(move |source| source.timeline(&window)).await?))
}

/// Written to a file first: whoever downloads slowly must not keep the others waiting.
pub(crate) async fn trace(State(tools): Tool, _: Arguments) -> Answer<Response> {
    let written = tools.desk.ask(|source| {
        let mut out = BufWriter::new(nameless_file()?);
        source.trace(&mut out)?;
        let mut file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(file)
    });
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"oxiray-timeline.json\""),
    ];
    Ok((headers, Body::from_stream(chunks(written.await?))).into_response())
}

/// A file on disk that goes with its last descriptor.
fn nameless_file() -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(File::from(open(std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR)?))
}

fn chunks(file: File) -> impl futures_util::Stream<Item = std::io::Result<Bytes>> {
    stream::try_unfold(file, |file| async {
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = Vec::with_capacity(CHUNK);
            (&file).take(CHUNK as u64).read_to_end(&mut chunk)?;
            Ok::<_, std::io::Error>((Bytes::from(chunk), file))
        });
        let (chunk, file) = read.await.map_err(std::io::Error::other)??;
        Ok((!chunk.is_empty()).then_some((chunk, file)))
    })
}

pub(crate) async fn log_files(State(tools): Tool, _: Arguments) -> Answer<Response> {
    Ok(reply(&tools.desk.ask(|source| source.log_files()).await?))
}

/// Of a log, what was asked for: at `offset` of the file of that name, or of the one that an earlier
/// answer was of.
async fn read_log(tools: &Tools, given: &Arguments, offset: i64, most: usize) -> Answer<Piece> {
    let (node, file, part) = (given.text("node_id"), given.text("file"), given.text("part"));
    tools
        .desk
        .ask(move |source| {
            let Ok(identity) = u64::from_str_radix(&part, 16) else {
                return source.read_log(&node, &file, offset, most);
            };
            let offset = offset.max(0).unsigned_abs();
            let after = LogPlace { file: identity, offset, number: 0 };
            source.read_log_on(&node, &file, after, most)
        })
        .await
}

pub(crate) async fn log(State(tools): Tool, given: Arguments) -> Answer<Response> {
    let offset = given.number("offset").unwrap_or(0);
    let most = given.number("most").unwrap_or(MOST);
    Ok(reply(&to_json(&read_log(&tools, &given, offset, most).await?)))
}

pub(crate) async fn log_stream(State(tools): Tool, given: Arguments) -> Answer<Response> {
    let offset = given.number("offset").unwrap_or(-(MOST as i64));
    let first = read_log(&tools, &given, offset, MOST).await?;
    Ok(tools.tails.stream(given.text("node_id"), given.text("file"), first).await)
}

pub(crate) async fn stream(State(tools): Tool, _: Arguments) -> Response {
    tools.live.stream()
}

async fn worker_here(tools: &Tools, given: &Arguments) -> Answer<u32> {
    let id = given.text("worker_id");
    let place = tools.desk.ask(move |source| source.worker(&id)).await?;
    match found(place, "worker")? {
        WorkerPlace { pid, is_here: true } => Ok(pid),
        WorkerPlace { .. } => Err(Fault::new(
            StatusCode::NOT_IMPLEMENTED,
            "That worker is on another machine: `oxiray stack` there shows what it does.",
        )),
    }
}

pub(crate) async fn stack(State(tools): Tool, given: Arguments) -> Answer<Response> {
    let pid = worker_here(&tools, &given).await?;
    Ok(reply(&json!({ "text": tools.py_spy.stack(pid).await? })))
}

pub(crate) async fn profile(State(tools): Tool, given: Arguments) -> Answer<Response> {
    let pid = worker_here(&tools, &given).await?;
    let seconds = given.number("seconds").unwrap_or(PROFILE_SECONDS);
    Ok(reply(&json!({ "svg": tools.py_spy.profile(pid, seconds).await? })))
}

pub(crate) async fn cancel(State(tools): Tool, given: Arguments) -> Answer<Response> {
    let (task, force) = (given.text("task_id"), given.text("force") == "true");
    let was_there = tools.desk.ask(move |source| source.cancel(&task, force)).await?;
    let text = match found(was_there, "task")? {
        true => "It was asked to end.",
        false => "It had ended before.",
    };
    Ok(reply(&json!({ "text": text })))
}

pub(crate) async fn kill(State(tools): Tool, given: Arguments) -> Answer<Response> {
    let actor = given.text("actor_id");
    let was_there = tools.desk.ask(move |source| source.kill(&actor)).await?;
    let text = match found(was_there, "actor")? {
        true => "It is being ended.",
        false => "It had ended before.",
    };
    Ok(reply(&json!({ "text": text })))
}

pub(crate) async fn metrics(State(tools): Tool, _: Arguments) -> Answer<Response> {
    let text = tools.desk.ask(|source| figures::text(source)).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

pub(crate) async fn openapi(_: Arguments) -> Response {
    reply(&schema::document())
}
