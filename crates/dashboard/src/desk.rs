//! The one reader of the session that all pages share: a thousand pages are not a thousand readers.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::reply::Fault;
use crate::source::{Answer, Source};

/// Where questions are asked.
#[derive(Clone)]
pub(crate) struct Desk(Arc<Mutex<Box<dyn Source>>>);

impl Desk {
    pub(crate) fn new(source: Box<dyn Source>) -> Self {
        Self(Arc::new(Mutex::new(source)))
    }

    /// Asks, off the thread that serves; one question at a time. Who leaves while waiting for
    /// their turn is forgotten.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn Source) -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        let mut source = self.0.clone().lock_owned().await;
        let answered = tokio::task::spawn_blocking(move || question(&mut **source));
        answered.await.unwrap_or_else(|panic| {
            tracing::error!(%panic, "a question could not be answered");
            Err(Fault::new(
                axum::http::StatusCode::INTERNAL_SERVER_ERROR,
                "A fault of the dashboard; its log, logs/dashboard.log in the session's directory, \
                 says more.",
            ))
        })
    }
}
