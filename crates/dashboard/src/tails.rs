//! Logs as they grow: one reader for each log that anybody follows, however many do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use oxiray_observe::log_stream::LogPlace;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};

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
    followed: Arc<Mutex<BTreeMap<Log, Sender<Arc<Added>>>>>,
}

/// What is added to a log, and where whoever reads it on must be.
#[derive(Debug)]
struct Added {
    after: LogPlace,
    piece: Piece,
}

pub(crate) fn to_json(piece: &Piece) -> Value {
    let Piece { offset, next, size, text, is_after_loss, .. } = piece;
    json!({
        "part": format!("{:016x}", piece.part),
        "offset": offset,
        "next": next,
        "size": size,
        "text": text,
        "is_after_loss": is_after_loss,
    })
}

impl Tails {
    pub(crate) fn new(desk: Desk) -> Self {
        Self { desk, followed: Arc::default() }
    }

    async fn read_on(&self, log: &Log, after: LogPlace) -> Answer<Piece> {
        let (node, file) = log.clone();
        self.desk.ask(move |source| source.read_log_on(&node, &file, after, MOST)).await
    }

    /// The log from `first` on, and what is added to it.
    pub(crate) async fn stream(&self, node: String, file: String, first: Piece) -> Response {
        let log = (node, file);
        let pieces = self.follow(&log, first.place).await;
        let reader =
            Follower { tails: self.clone(), log, pieces, place: first.place, has_caught_up: false };
        let first = event("text", &to_json(&first));
        stream_reply(stream::unfold((Some(first), reader), |(first, mut reader)| async {
            let bytes = match first {
                Some(first) => first,
                None => reader.next().await?,
            };
            Some((Ok(bytes), (None, reader)))
        }))
    }

    async fn follow(&self, log: &Log, place: LogPlace) -> Receiver<Arc<Added>> {
        let mut followed = self.followed.lock().await;
        if let Some(sender) = followed.get(log) {
            return sender.subscribe();
        }
        let (sender, receiver) = broadcast::channel(KEPT);
        followed.insert(log.clone(), sender.clone());
        tokio::spawn(self.clone().look(log.clone(), place, sender));
        receiver
    }

    /// Reads what is added while anybody follows.
    async fn look(self, log: Log, mut place: LogPlace, sender: Sender<Arc<Added>>) {
        loop {
            match self.read_on(&log, place).await {
                Ok(piece) if piece.next > piece.offset => {
                    let after = std::mem::replace(&mut place, piece.place);
                    let _ = sender.send(Arc::new(Added { after, piece }));
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
    pieces: Receiver<Arc<Added>>,
    place: LogPlace,
    /// Has read what was there when it came, or what it missed.
    has_caught_up: bool,
}

impl Follower {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.has_caught_up {
                let piece = self.tails.read_on(&self.log, self.place).await.ok()?;
                self.has_caught_up = piece.next == piece.offset;
                if !self.has_caught_up {
                    return Some(self.take(&piece));
                }
            }
            match tokio::time::timeout(PING, self.pieces.recv()).await {
                Err(_) => return Some(ping()),
                Ok(Ok(added)) if added.after == self.place => return Some(self.take(&added.piece)),
                // Something that it has read already, or that is not what comes next.
                Ok(Ok(_) | Err(RecvError::Lagged(_))) => self.has_caught_up = false,
                Ok(Err(RecvError::Closed)) => return None,
            }
        }
    }

    fn take(&mut self, piece: &Piece) -> Bytes {
        self.place = piece.place;
        event("text", &to_json(piece))
    }
}
