//! The TCP connections of a cluster: who may connect, and how bytes get across.
//!
//! - [`Secret`]: the cluster's secret, which people pass around as a token
//! - [`Keyring`]: the secrets a node knows, and the file they are kept in
//! - [`Identity`], [`Security`]: what a node shows to others, and asks of them
//! - [`front_config`], [`front_authority`], [`Plaque`]: what the dashboard shows to others than nodes
//! - [`Link`]: frames over a connection that somebody else's event loop drives
//! - [`Assembler`]: frames of bytes that come in pieces
//! - [`Bulk`]: bytes over a connection that has a thread of its own
//! - [`Listener`], [`Doorkeeper`]: who connects, and how long they may stay unknown
//! - [`Links`]: all connections of a service
//! - [`Conversation`], [`Ways`]: what two nodes say to each other, over connections that come and go,
//!   and by which way these lead
//! - [`NetError`], [`LinkError`], [`TokenError`]: what can go wrong, and what to do about it
//!
//! Whoever has the token is a member of the cluster, and nobody else is. Each secret gives one
//! certificate authority, the same wherever it is derived; each process signs itself a certificate
//! by it; both sides of a connection show theirs (TLS 1.3). Nothing a stranger sends gets further
//! than the handshake.
//!
//! Inside: `authority` (from a secret to certificates), `refusal` (TLS errors in plain words).

mod authority;
mod bulk;
mod conversation;
mod doorkeeper;
mod error;
mod frame;
mod front;
mod identity;
mod keyring;
mod link;
mod links;
mod listener;
mod refusal;
mod secret;
mod ways;

pub use bulk::{Bulk, Stopper};
pub use conversation::{Conversation, Cursor, Fate, Receipt};
pub use doorkeeper::{Doorkeeper, LINES_PER_MINUTE, MAX_STRANGERS, PATIENCE_NS};
pub use error::{LinkError, NetError, TokenError};
pub use frame::{Assembler, MAX_FRAME};
pub use front::{FRONT_NAME, Plaque, front_authority, front_config};
pub use identity::{ALPN, Identity, SERVER_NAME, Security};
pub use keyring::Keyring;
pub use link::{Link, Progress};
pub use links::{Ended, Links, Next, Reading, Watch};
pub use listener::Listener;
pub use secret::Secret;
pub use ways::{Step, Way, Ways};
