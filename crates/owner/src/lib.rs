//! What a process knows of the objects, tasks, leases and actors it uses.
//! Pure: no clock, no sockets, no threads; what must be done is said to an [`Outbox`].
//!
//! - [`object`]: objects, their values and counts
//! - [`task`]: tasks from submission to their one end
//! - [`lease`]: which worker gets which task, and when to ask for more workers
//! - [`actor`]: calls to actors, in order
//! - `aside`: values that could not be read where they are said to be, and their tasks
//! - [`change`]: what happens to tasks on their way, told for the record
//! - [`stream`]: what tasks yield one at a time, and who reads it
//! - `cancel`: tasks that are not wanted any more
//! - [`memory`]: tasks whose worker was ended because memory ran out
//! - `lineage`: making objects again that were lost with their node
//! - [`borrow`]: references that cross processes
//! - [`report`]: what is held, and by what
//! - [`why`]: why tasks are not done
//! - `words`: what failures say
//! - [`owner`]: the state they share
//!
//! Invariants, checked by [`Owner::validate`] and cited by the tests:
//! - **O-1** Every task ends once: each of its returns gets a value or a failure.
//! - **O-2** A task is in exactly one place: waiting for arguments, ready, pushed, put aside.
//! - **O-3** An object lives while anything counts on it, and not longer.
//! - **O-4** A lease is held by one shape, and every task in flight on it is pushed.
//! - **O-5** Leases granted never exceed leases requested, but for those withdrawn
//!   while the grant was on its way.
//! - **O-6** Calls of one caller to one actor are pushed in the order of their submission; one whose
//!   arguments could not be read there, or that raised and may be tried again, goes again before
//!   all that have not gone. The caller is a task, or a driver or actor with all that it does.
//! - **O-7** A ready task has all its arguments' values; one that waits has counted those that
//!   are missing, and hears of each.
//! - **O-8** A task that was cancelled is not tried again, and ends like any other (O-1).
//! - **O-9** News of an actor's incarnation that is older than the latest heard of change nothing. No
//!   call is pushed twice to one incarnation, but one that it did not begin, or that raised and may
//!   be tried again.

pub mod actor;
mod aside;
pub mod borrow;
mod cancel;
pub mod change;
pub mod lease;
mod lineage;
pub mod memory;
mod moved;
pub mod object;
pub mod owner;
pub mod report;
pub mod stream;
pub mod task;
pub mod why;
mod words;

#[cfg(test)]
mod tests;

pub use actor::{ANY_INCARNATION, ActorEnd};
pub use cancel::cancelled;
pub use change::{Attempt, Change};
pub use memory::MemoryRetries;
pub use object::{Content, Failure, ObjectKey, SmallBytes};
pub use owner::{Outbox, Owner};
pub use stream::Next;
pub use task::{CallOrder, ReturnKeys, Target, TaskKey, TaskSpec};
