//! What the dashboard needs to know of a session: questions, answered as JSON in the shape that
//! the REST API documents.

use std::io::Write;

use oxiray_observe::log_stream::LogPlace;
use oxiray_observe::{Query, Resource};
use serde_json::Value;

use crate::reply::Fault;

/// Which part of the timeline, in milliseconds since 1970, and how wide it is drawn.
#[derive(Clone, Default, Debug)]
pub(crate) struct Window {
    pub(crate) from: Option<f64>,
    pub(crate) to: Option<f64>,
    pub(crate) width: u32,
    /// What names must contain.
    pub(crate) search: String,
}

/// Text of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// The file that it is in: of a log with older parts it is one of several.
    pub(crate) part: u64,
    pub(crate) offset: u64,
    pub(crate) next: u64,
    /// Bytes that the file has.
    pub(crate) size: u64,
    pub(crate) text: String,
    /// Something is missing before it: it was removed before it could be read.
    pub(crate) is_after_loss: bool,
    /// Where the log goes on, be it in another file.
    pub(crate) place: LogPlace,
}

/// Where a worker runs.
#[derive(Clone, Debug)]
pub(crate) struct WorkerPlace {
    pub(crate) pid: u32,
    /// On the machine that this runs on.
    pub(crate) is_here: bool,
}

pub(crate) type Answer<T> = Result<T, Fault>;

/// A session. Questions read files and ask nodes: they block.
pub(crate) trait Source: Send {
    fn cluster(&mut self) -> Answer<Value>;
    fn list(&mut self, resource: Resource, query: &Query) -> Answer<Value>;
    fn get(&mut self, resource: Resource, id: &str) -> Answer<Option<Value>>;
    fn summary(&mut self, resource: Resource) -> Answer<Value>;
    fn why(&mut self, task: &str) -> Answer<Option<String>>;
    fn task_log(&mut self, task: &str) -> Answer<Option<Value>>;
    fn timeline(&mut self, window: &Window) -> Answer<Value>;
    fn trace(&mut self, out: &mut dyn Write) -> Answer<()>;
    fn log_files(&mut self) -> Answer<Value>;
    /// Of the file of that name: from `offset` on, counted from the end if it is negative.
    fn read_log(&mut self, node: &str, file: &str, offset: i64, most: usize) -> Answer<Piece>;
    /// What follows a place, whatever the files of the log are called by now.
    fn read_log_on(
        &mut self,
        node: &str,
        file: &str,
        after: LogPlace,
        most: usize,
    ) -> Answer<Piece>;
    /// What programs count, of each process that counts: as `oxiray_observe` reads it.
    fn figures(&mut self) -> Answer<Vec<Value>>;
    /// Cancels a task; whether it had not ended by then.
    fn cancel(&mut self, task: &str, force: bool) -> Answer<Option<bool>>;
    /// Ends an actor; whether it had not ended by then.
    fn kill(&mut self, actor: &str) -> Answer<Option<bool>>;
    fn worker(&mut self, id: &str) -> Answer<Option<WorkerPlace>>;
}
