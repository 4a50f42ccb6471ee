//! The dashboard around a session that is made up.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::Response;
use futures_util::StreamExt as _;
use oxiray_observe::log_stream::LogPlace;
use oxiray_observe::{Query, Resource};
use serde_json::{Value, json};

use crate::app::App;
use crate::desk::Desk;
use crate::door::Door;
use crate::guard::Guard;
use crate::hosts::Hosts;
use crate::jobs::Jobs;
use crate::routes::{self, Kind, Place};
use crate::server::{self, Limits};
use crate::source::{Answer, Piece, Source, Window, WorkerPlace};

const ID: &str = "00ff";
const LOG: &str = "one\ntwo <b>\n";
/// The file that the log is in.
const PART: u64 = 0xab;

/// Counts how often it is asked.
#[derive(Clone, Default)]
struct Fake {
    looks: Arc<AtomicUsize>,
    reads: Arc<AtomicUsize>,
}

impl Source for Fake {
    fn cluster(&mut self) -> Answer<Value> {
        let look = self.looks.fetch_add(1, Ordering::Relaxed);
        Ok(json!({ "look": look, "tasks": { "RUNNING": 1 }, "nodes": [] }))
    }

    fn list(&mut self, resource: Resource, query: &Query) -> Answer<Value> {
        query.check(resource)?;
        Ok(json!({ "total": 0, "filtered": 0, "rows": [] }))
    }

    fn get(&mut self, _: Resource, id: &str) -> Answer<Option<Value>> {
        Ok((id == ID).then(|| json!({ "name": "<script>" })))
    }

    fn summary(&mut self, _: Resource) -> Answer<Value> {
        Ok(json!({ "rows": [], "total": 0 }))
    }

    fn why(&mut self, _: &str) -> Answer<Option<String>> {
        Ok(Some("It waits.".into()))
    }

    fn cancel(&mut self, task: &str, force: bool) -> Answer<Option<bool>> {
        Ok((task == ID).then_some(force))
    }

    fn kill(&mut self, actor: &str) -> Answer<Option<bool>> {
        Ok((actor == ID).then_some(true))
    }

    fn task_log(&mut self, _: &str) -> Answer<Option<Value>> {
        let nothing = json!({ "text": "", "truncated": false });
        Ok(Some(json!({ "out": nothing, "err": nothing })))
    }

    fn timeline(&mut self, _: &Window) -> Answer<Value> {
        Ok(json!({ "rows": [] }))
    }

    fn trace(&mut self, out: &mut dyn std::io::Write) -> Answer<()> {
        Ok(out.write_all(&vec![b' '; 1_000_000])?)
    }

    fn log_files(&mut self) -> Answer<Value> {
        Ok(json!({ "files": [] }))
    }

    fn read_log(&mut self, _: &str, _: &str, offset: i64, most: usize) -> Answer<Piece> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let from = match offset {
            0.. => (offset as usize).min(LOG.len()),
            _ => LOG.len().saturating_sub(offset.unsigned_abs() as usize),
        };
        let text = &LOG[from..(from + most).min(LOG.len())];
        let next = (from + text.len()) as u64;
        Ok(Piece {
            part: PART,
            offset: from as u64,
            next,
            size: LOG.len() as u64,
            text: text.into(),
            is_after_loss: false,
            place: LogPlace { file: PART, offset: next, number: 0 },
        })
    }

    fn read_log_on(
        &mut self,
        node: &str,
        file: &str,
        after: LogPlace,
        most: usize,
    ) -> Answer<Piece> {
        assert_eq!(after.file, PART);
        self.read_log(node, file, after.offset as i64, most)
    }

    fn figures(&mut self) -> Answer<Vec<Value>> {
        Ok(Vec::new())
    }

    fn worker(&mut self, _: &str) -> Answer<Option<WorkerPlace>> {
        Ok(Some(WorkerPlace { pid: 1, is_here: false }))
    }
}

fn app(fake: &Fake) -> App {
    let hosts = Hosts::new("127.0.0.1".parse().unwrap(), "", "machine");
    let jobs = Jobs::new(std::path::Path::new("/nowhere"));
    App::new(Guard::new("token".into(), 8265, hosts), Desk::new(Box::new(fake.clone())), jobs)
}

async fn ask(app: &App, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost:8265");
    request = request.header("authorization", "Bearer token");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    app.answer(request.body(Body::empty()).unwrap()).await
}

async fn text(response: Response) -> String {
    String::from_utf8(to_bytes(response.into_body(), 1 << 24).await.unwrap().to_vec()).unwrap()
}

/// The next event of a stream, by name.
async fn next_event(events: &mut axum::body::BodyDataStream) -> String {
    let event = String::from_utf8(events.next().await.unwrap().unwrap().to_vec()).unwrap();
    event.lines().next().unwrap().replace("event: ", "")
}

/// The next that says something.
async fn next_change(events: &mut axum::body::BodyDataStream) -> String {
    loop {
        match next_event(events).await.as_str() {
            "ping" => {}
            name => return name.to_owned(),
        }
    }
}

#[tokio::test]
async fn every_route_answers_as_documented() {
    let app = app(&Fake::default());
    for route in routes::all() {
        let mut path = route.path.to_owned();
        for parameter in route.parameters.iter().filter(|known| known.place == Place::Path) {
            let value = match parameter.kind {
                Kind::OneOf(names) => names[0],
                _ => ID,
            };
            path = path.replace(&format!("{{{}}}", parameter.name), value);
        }
        let method = if route.is_change { "POST" } else { "GET" };
        let response = ask(&app, method, &path, &[]).await;
        // The made-up worker is on another machine.
        let expected = if route.path.starts_with("/api/workers/{worker_id}/") { 501 } else { 200 };
        assert_eq!(response.status(), expected, "{path}");
        let other = if route.is_change { "GET" } else { "POST" };
        let response = ask(&app, other, &path, &[]).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert!(text(response).await.contains("error"));
    }
}

#[tokio::test]
async fn what_is_given_is_checked_and_not_repeated() {
    let app = app(&Fake::default());
    for (path, status) in [
        ("/api/tasks?limit=0", 400),
        ("/api/tasks?limit=1&limit=1", 400),
        ("/api/tasks?offset=-1", 400),
        ("/api/tasks?%3Cscript%3E=1", 400),
        ("/api/tasks?filter=name", 400),
        ("/api/tasks?filter=name=x&filter=state!=FAILED", 200),
        ("/api/tasks?sort=nonsense", 400),
        ("/api/timeline?from=NaN", 400),
        ("/api/tasks/%3Cscript%3E", 404),
        ("/api/tasks/00", 404),
        ("/api/nothing", 404),
        ("/api/tasks/%FF", 404),
        ("/%3Cscript%3E", 404),
    ] {
        let response = ask(&app, "GET", path, &[]).await;
        assert_eq!(response.status(), status, "{path}");
        assert!(!text(response).await.contains("<script>"), "{path}");
    }
}

#[tokio::test]
async fn answers_are_packed_for_whoever_can_unpack_them_but_streams_are_not() {
    let app = app(&Fake::default());
    let accepts = [("accept-encoding", "gzip")];
    let packed = ask(&app, "GET", "/api/openapi.json", &accepts).await;
    assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
    let stream = ask(&app, "GET", "/api/stream", &accepts).await;
    assert!(!stream.headers().contains_key(header::CONTENT_ENCODING));
    assert_eq!(text(ask(&app, "GET", "/api/timeline.json", &[]).await).await.len(), 1_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_pages_are_one_reader() {
    let fake = Fake::default();
    let app = app(&fake);
    let mut pages = Vec::new();
    for _ in 0..1000 {
        pages.push(ask(&app, "GET", "/api/stream", &[]).await.into_body().into_data_stream());
    }
    for page in &mut pages {
        assert_eq!(next_change(page).await, "cluster");
        assert_eq!(next_change(page).await, "tasks");
    }
    // Only the cluster changes.
    for page in &mut pages {
        assert_eq!(next_change(page).await, "cluster");
    }
    let looks = fake.looks.load(Ordering::Relaxed);
    assert!(looks <= 3, "{looks}");
    // Nobody looks: it is not looked.
    drop(pages);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let looks = fake.looks.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(fake.looks.load(Ordering::Relaxed), looks);
    // The next page is shown what is so now.
    let mut page = ask(&app, "GET", "/api/stream", &[]).await.into_body().into_data_stream();
    assert_eq!(next_change(&mut page).await, "cluster");
    assert_eq!(fake.looks.load(Ordering::Relaxed), looks + 1);
}

#[tokio::test(start_paused = true)]
async fn a_log_is_read_once_for_all_who_follow_it() {
    let fake = Fake::default();
    let app = app(&fake);
    let path = format!("/api/logs/{ID}/worker-1.out/stream?offset=4");
    let mut pages = Vec::new();
    for _ in 0..100 {
        pages.push(ask(&app, "GET", &path, &[]).await.into_body().into_data_stream());
    }
    for page in &mut pages {
        let event = String::from_utf8(page.next().await.unwrap().unwrap().to_vec()).unwrap();
        let data: Value =
            serde_json::from_str(event.lines().nth(1).unwrap().trim_start_matches("data: "))
                .unwrap();
        let part = "00000000000000ab";
        let (offset, next, text) = (4, 12, "two <b>\n");
        let expected = json!({
            "part": part, "offset": offset, "next": next, "size": next, "text": text,
            "is_after_loss": false,
        });
        assert_eq!(data, expected);
    }
    let others: Vec<_> = pages.iter_mut().map(next_event).collect();
    let before = fake.reads.load(Ordering::Relaxed);
    for event in futures_util::future::join_all(others).await {
        assert_eq!(event, "ping");
    }
    // Fifteen seconds, two looks a second by one reader, and each made sure once.
    let reads = fake.reads.load(Ordering::Relaxed) - before;
    assert!(reads <= 100 + 40, "{reads}");
}

#[tokio::test]
async fn it_ends_when_nobody_is_connected() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits { idle: Duration::from_millis(50), ..Limits::default() };
    let served =
        tokio::spawn(server::serve(listener, app(&Fake::default()), Door::local(), limits));
    let connection = tokio::net::TcpStream::connect(address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!served.is_finished());
    drop(connection);
    served.await.unwrap().unwrap();
}
