//! Leases: workers that a process may push tasks to.

use prost::Message;

use super::{Devices, Shape};
use crate::frame::FailureCode;

/// "Of this shape I have asked for so many leases in all." Never falls below
/// the number granted; a smaller total than before withdraws.
#[derive(Clone, PartialEq, Message)]
pub struct SetDemand {
    /// The sender's own name for the shape.
    #[prost(uint64, tag = "1")]
    pub shape_key: u64,
    /// The shape.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<Shape>,
    /// Leases asked for since the beginning.
    #[prost(uint64, tag = "3")]
    pub requested_total: u64,
    /// Names of the first tasks that wait for them, for people.
    #[prost(string, tag = "4")]
    pub tasks: String,
}

/// A worker to push tasks to, with resources taken for it.
#[derive(Clone, PartialEq, Message)]
pub struct Granted {
    /// As in [`SetDemand`].
    #[prost(uint64, tag = "1")]
    pub shape_key: u64,
    /// Names the lease when it is given back.
    #[prost(uint64, tag = "2")]
    pub lease: u64,
    /// The worker. A channel to it was announced before this.
    #[prost(uint64, tag = "3")]
    pub worker: u64,
    /// Devices that go with it.
    #[prost(message, repeated, tag = "4")]
    pub devices: Vec<Devices>,
}

/// Names one lease, process, actor: several small messages share this form.
#[derive(Clone, PartialEq, Message)]
pub struct Lease {
    /// As in [`Granted`].
    #[prost(uint64, tag = "1")]
    pub lease: u64,
}

/// What a process asked for can never be.
#[derive(Clone, PartialEq, Message)]
pub struct Unschedulable {
    /// As in [`SetDemand`].
    #[prost(uint64, tag = "1")]
    pub shape_key: u64,
    /// Why, in words.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// What its tasks fail with: a number of [`FailureCode`]; 0: no node will do.
    #[prost(uint32, tag = "3")]
    pub failure: u32,
}

impl Unschedulable {
    /// What its tasks fail with.
    pub fn code(&self) -> FailureCode {
        let named = u8::try_from(self.failure).ok().filter(|number| *number != 0);
        named.and_then(FailureCode::from_u8).unwrap_or(FailureCode::Unschedulable)
    }
}
