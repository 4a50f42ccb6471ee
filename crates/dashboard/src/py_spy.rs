//! Stacks and flame graphs of workers, by py-spy, a few at a time: each stops its worker again and
//! again for a moment.

use std::sync::Arc;

use axum::http::StatusCode;
use oxiray_observe::{Error, py_spy};
use tokio::sync::Semaphore;

use crate::reply::Fault;
use crate::source::Answer;

const MOST_AT_A_TIME: usize = 2;

/// How many more may run.
#[derive(Clone, Debug)]
pub(crate) struct PySpy(Arc<Semaphore>);

impl PySpy {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST_AT_A_TIME)))
    }

    /// What every thread of a process does now.
    pub(crate) async fn stack(&self, pid: u32) -> Answer<String> {
        self.run(move || py_spy::stack(pid)).await
    }

    /// Where a process spends its time: a flame graph, as SVG.
    pub(crate) async fn profile(&self, pid: u32, seconds: u32) -> Answer<String> {
        self.run(move || py_spy::flame_graph(pid, seconds)).await
    }

    async fn run(
        &self,
        look: impl FnOnce() -> Result<String, Error> + Send + 'static,
    ) -> Answer<String> {
        let Ok(turn) = self.0.clone().try_acquire_owned() else {
            return Err(Fault::new(
                StatusCode::TOO_MANY_REQUESTS,
                "Others are being looked at just now; try again when that is done.",
            ));
        };
        // Goes on when the browser has left, and is counted until it ends.
        let looked = tokio::task::spawn_blocking(move || {
            let looked = look();
            drop(turn);
            looked
        });
        Ok(looked.await.map_err(std::io::Error::other)??)
    }
}
