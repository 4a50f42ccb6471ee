//! Every environment variable that oxiray reads: declared once, read through its declaration.
//!
//! - [`Setting`]: a name, what it may be, what it is unless said, and one sentence
//! - `table`: all of them; Python reads the same table through the native module
//! - [`page`]: `docs/settings.md`, made from it
//!
//! Settings of one session are arguments of `init()` and `oxiray start`. A variable is for what must
//! be known before there is a session, for what holds for all of a machine's, and for what Ray has
//! one for.

mod page;
mod setting;
mod table;

pub use page::page;
pub use setting::{Audience, Kind, Malformed, Setting};
pub use table::*;
