//! The control service's decisions: who is a member, where actors live, what
//! they are called, which programs run, and a table of keys and values.
//!
//! Pure: no clock, no sockets, no randomness. A shell feeds
//! [`Control::on_event`] and does what it asks for through [`Outbox`]. What must
//! outlive the process is said as [`Change`]s of a few tables, which the shell
//! writes *before* it sends anything of the same event; [`Control::restore`]
//! begins again from them. The way in:
//!
//! - `event`: what happens ([`Event`]) and what is asked for ([`Outbox`])
//! - `record`: what is kept, and under which key
//! - `control`: the state, and which part of it an event concerns
//! - `members`, `joining`, `leaving`: who is in the cluster
//! - `health`: members that say nothing: suspected, and given up
//! - `heads`: where this service and those are that would take over
//! - `draining`: members that are to leave in an orderly way
//! - `alone`: the service of a node that is the only one, in its process
//! - `loads`: what is free where, passed on
//! - `actors`, `lifecycle`, `watches`: where actors live, and who wants to know
//! - `placement`, `warnings`: which node an actor goes to, and who hears that there is none
//! - `dead_actors`, `names`, `naming`: why actors died, and what they are called
//! - `groups`, `reserving`, `unmaking`: placement groups: what is known of them, how bundles are
//!   reserved at nodes, and how they are lost and removed; `in_groups`: actors in them
//! - `gone`: which processes of a node have ended
//! - `jobs`, `kv`, `tools`: programs, keys and values, `oxiray status`
//! - [`listing`]: what there is, in parts
//! - `restore`: beginning again; `validate`: the invariants

mod actors;
mod alone;
mod control;
mod dead_actors;
mod draining;
mod event;
mod gone;
mod groups;
mod heads;
mod health;
mod in_groups;
mod jobs;
mod joining;
mod kv;
mod leaving;
mod lifecycle;
pub mod listing;
mod loads;
mod members;
mod names;
mod naming;
mod placement;
mod record;
mod reserving;
mod restore;
mod tools;
mod unmaking;
mod validate;
mod warnings;
mod watches;

pub use alone::{Alone, Answers};
pub use control::Control;
pub use event::{Change, Event, Now, Outbox, PeerId, Record, Table};
pub use health::Health;
pub use kv::MOST_VALUE_BYTES;
pub use members::GRACE;
pub use restore::Damaged;
pub use warnings::unschedulable;

#[cfg(test)]
mod tests;
