//! Logs as they grow: one reader for each log that anybody follows, however many do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::sync::broadcast::{self, Receiver, Sender};

use crate::desk::Desk;
use crate::live::{PING, event, ping, stream_reply};
use crate::source::{Answer, Piece};

/// Between two looks at a log.
const PERIOD: Duration = Duration::from_millis(500);
/// Bytes read at a time, and at first of what is there already.
pub(crate) const MOST: usize = 64 * 1024;
/// Pieces kept for those who are slower than the log; who is slower still reads for itself.
const KEPT: usize = 16;

/// Node and file.
type Log = (String, String);

/// The logs that are followed.
#[derive(Clone)]
pub(crate) struct Tails {
    desk: Desk,
    followed: Arc<Mutex<BTreeMap<Log, Sender<Arc<Piece>>>>>,
}

pub(crate) fn to_json(piece: &Piece) -> Value {
    let Piece { offset, next, size, text } = piece;
    json!({ "offset": offset, "next": next, "size": size, "text": text })
}

impl Tails {
    pub(crate) fn new(desk: Desk) -> Self {
        Self { desk, followed: Arc::default() }
    }

    async fn read(&self, log: &Log, offset: i64) -> Answer<Piece> {
        let (node, file) = log.clone();
        self.desk.ask(move |source| source.read_log(&node, &file, offset, MOST)).await
    }

    /// The log from `offset` on, and what is added to it.
    pub(crate) async fn stream(&self, node: String, file: String, offset: i64) -> Answer<Response> {
        let log = (node, file);
        let first = self.read(&log, offset).await?;
        let pieces = self.follow(&log, first.next).await;
        let reader = Follower {
            tails: self.clone(),
            log,
            pieces,
            position: first.next,
            has_caught_up: false,
        };
        let first = event("text", &to_json(&first));
        Ok(stream_reply(stream::unfold((Some(first), reader), |(first, mut reader)| async {
            let bytes = match first {
                Some(first) => first,
                None => reader.next().await?,
            };
            Some((Ok(bytes), (None, reader)))
        })))
    }

    async fn follow(&self, log: &Log, position: u64) -> Receiver<Arc<Piece>> {
        let mut followed = self.followed.lock().await;
        if let Some(sender) = followed.get(log) {
            return sender.subscribe();
        }
        let (sender, receiver) = broadcast::channel(KEPT);
        followed.insert(log.clone(), sender.clone());
        tokio::spawn(self.clone().look(log.clone(), position, sender));
        receiver
    }

    /// Reads what is added while anybody follows.
    async fn look(self, log: Log, mut position: u64, sender: Sender<Arc<Piece>>) {
        loop {
            match self.read(&log, position as i64).await {
                Ok(piece) if piece.next > piece.offset => {
                    position = piece.next;
                    let _ = sender.send(Arc::new(piece));
                }
                // Nothing new, or the node does not answer now.
                _ => tokio::time::sleep(PERIOD).await,
            }
            let mut followed = self.followed.lock().await;
            if sender.receiver_count() == 0 {
                followed.remove(&log);
                return;
            }
        }
    }
}

/// One who follows.
struct Follower {
    tails: Tails,
    log: Log,
    pieces: Receiver<Arc<Piece>>,
    position: u64,
    /// Has read what was there when it came, or what it missed.
    has_caught_up: bool,
}

impl Follower {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let piece = if self.has_caught_up {
                match tokio::time::timeout(PING, self.pieces.recv()).await {
                    Err(_) => return Some(ping()),
                    Ok(Ok(piece)) if piece.offset == self.position => piece,
                    Ok(Ok(piece)) if piece.next <= self.position => continue,
                    Ok(Ok(_) | Err(broadcast::error::RecvError::Lagged(_))) => {
                        self.has_caught_up = false;
                        continue;
                    }
                    Ok(Err(broadcast::error::RecvError::Closed)) => return None,
                }
            } else {
                let piece = self.tails.read(&self.log, self.position as i64).await.ok()?;
                self.has_caught_up = piece.next == piece.offset || piece.next == piece.size;
                if piece.next == piece.offset {
                    continue;
                }
                Arc::new(piece)
            };
            self.position = piece.next;
            return Some(event("text", &to_json(&piece)));
        }
    }
}
