//! Looking at a session from outside: what runs, what ran, what is held, what was printed.
//!
//! A [`Session`] is one connection to one node, as an observer: it is asked nothing by the
//! engine and holds nothing of it. That node passes questions on to the others, so that any
//! node of a cluster answers for all. Rows are JSON objects with Ray's names; the command
//! line, Python's `ray.util.state` and the dashboard all show these.
//!
//! - [`session`]: [`Session`]: list, get, summary
//! - [`find`]: where sessions are
//! - [`query`]: filters, order and parts of a list; [`resource`]: what can be listed
//! - [`rows`]: what the engine says, as rows; `row`: how they are declared; [`typescript`]: for the page
//! - `tasks`: tasks, of which there may be a million; `events`: where they are read from
//! - `gaps`: what is missing of them; `why`: why one is not done
//! - `timeline`: what ran when, to be drawn; `whole_file`: a file that is whole or not there
//! - [`logs`]: log files of every node; [`log_stream`]: one as it grows, with its older parts;
//!   [`task_output`]: what one task printed of them
//! - `nodes`: nodes, and what each says of its machine; `machine`: processors and memory
//! - `figures`: what programs count with `util.metrics`
//! - [`py_spy`]: what a process does right now
//! - `ending`: a task to be cancelled, an actor to be ended
//! - `ended`: a session that is not there any more, from what it left
//! - [`templates`]: processes that workers are forked from, and their memory
//! - `packages`: files of runtime environments, from whichever node has them
//! - `observer`: the connection; [`error`]: what can go wrong

mod ended;
mod ending;
pub mod error;
mod events;
#[cfg(test)]
mod fake_node;
mod figures;
pub mod find;
mod gaps;
pub mod log_stream;
pub mod logs;
mod machine;
mod nodes;
mod observer;
mod packages;
pub mod py_spy;
pub mod query;
pub mod resource;
mod row;
pub mod rows;
pub mod session;
pub mod task_output;
mod tasks;
pub mod templates;
mod timeline;
pub mod typescript;
mod whole_file;
mod why;

pub use error::{Error, Result};
pub use query::{Filter, Page, Query, Sort};
pub use resource::Resource;
pub use row::{Amount, Amounts};
pub use rows::ProcessType;
pub use rows::jobs::CLERKS;
pub use rows::objects::Held;
pub use rows::workers::{Activity, WorkerRow};
pub use session::Session;
