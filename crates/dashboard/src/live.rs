//! Changes of the session, as they happen: one task looks while any page is open, and all pages
//! are sent the same bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use oxiray_observe::Resource;
use serde_json::Value;
use tokio::sync::watch;

use crate::desk::Desk;

/// Between two looks at the session.
const PERIOD: Duration = Duration::from_secs(1);
/// Between two signs of life; by these a page that is gone is noticed, too.
pub(crate) const PING: Duration = Duration::from_secs(15);

/// An event of a stream, as it is sent.
pub(crate) fn event(name: &str, data: &Value) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// A sign of life.
pub(crate) fn ping() -> Bytes {
    Bytes::from_static(b"event: ping\ndata: {}\n\n")
}

/// An answer that goes on until the page is closed.
pub(crate) fn stream_reply(
    events: impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static,
) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(events)).into_response()
}

/// The latest of each event.
#[derive(Clone, Default, PartialEq, Eq)]
struct News([Bytes; 2]);

/// Where pages hear of changes.
#[derive(Clone)]
pub(crate) struct Live {
    desk: Desk,
    news: Arc<watch::Sender<News>>,
    is_looking: Arc<AtomicBool>,
}

impl Live {
    pub(crate) fn new(desk: Desk) -> Self {
        Self { desk, news: Arc::new(watch::channel(News::default()).0), is_looking: Arc::default() }
    }

    /// The latest events, and all that follow. A page that is slow gets the latest only.
    pub(crate) fn stream(&self) -> Response {
        let receiver = self.news.subscribe();
        if !self.is_looking.swap(true, Ordering::AcqRel) {
            tokio::spawn(self.clone().look());
        }
        let first = Some((receiver, News::default(), true));
        stream_reply(stream::unfold(first, |state| async {
            let (mut receiver, mut sent, mut is_new) = state?;
            loop {
                let latest = receiver.borrow_and_update().clone();
                if let Some(at) = (0..2).find(|&at| latest.0[at] != sent.0[at]) {
                    sent.0[at] = latest.0[at].clone();
                    let event = sent.0[at].clone();
                    // Not seen, so that the other event follows at once.
                    receiver.mark_changed();
                    return Some((Ok(event), Some((receiver, sent, false))));
                }
                if is_new {
                    // Something at once: the page knows that it is connected.
                    return Some((Ok(ping()), Some((receiver, sent, false))));
                }
                is_new = false;
                match tokio::time::timeout(PING, receiver.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return None,
                    Err(_) => return Some((Ok(ping()), Some((receiver, sent, false)))),
                }
            }
        }))
    }

    /// Looks while anybody does.
    async fn look(self) {
        while self.news.receiver_count() > 0 {
            let looked =
                self.desk.ask(|source| Ok((source.cluster()?, source.summary(Resource::Tasks)?)));
            match looked.await {
                Ok((cluster, tasks)) => {
                    let news = News([event("cluster", &cluster), event("tasks", &tasks)]);
                    self.news.send_if_modified(|known| {
                        let is_changed = *known != news;
                        *known = news;
                        is_changed
                    });
                }
                Err(fault) => tracing::debug!(fault.why, "the session cannot be looked at"),
            }
            tokio::time::sleep(PERIOD).await;
        }
        // The next page is not to be shown what was so long ago.
        self.news.send_replace(News::default());
        self.is_looking.store(false, Ordering::Release);
    }
}
