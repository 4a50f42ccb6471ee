//! What is beyond this node: other machines, or nobody.

use oxiray_control::Alone;
use oxiray_wire::cluster::{Join, to_control};

use crate::net::Net;
use crate::poller::Poller;

/// The cluster as far as it is not this node.
pub(crate) enum Reach {
    /// The node is the only one: the control service is here, too, and nobody connects.
    Alone(Box<Alone>),
    /// Other nodes may be there, and the control service is a process of its own.
    Others(Box<Net>),
}

impl Reach {
    pub(crate) fn is_alone(&self) -> bool {
        matches!(self, Self::Alone(_))
    }

    /// The network, if there is one.
    pub(crate) fn net(&self) -> Option<&Net> {
        match self {
            Self::Alone(_) => None,
            Self::Others(net) => Some(net),
        }
    }

    pub(crate) fn net_mut(&mut self) -> Option<&mut Net> {
        match self {
            Self::Alone(_) => None,
            Self::Others(net) => Some(net),
        }
    }

    /// The control service of a node that is alone.
    pub(crate) fn own_control(&mut self) -> Option<&mut Alone> {
        match self {
            Self::Alone(alone) => Some(alone),
            Self::Others(_) => None,
        }
    }

    /// Says something to the control service.
    pub(crate) fn tell_control(&mut self, body: to_control::Body) {
        match self {
            Self::Alone(alone) => alone.say(body),
            Self::Others(net) => net.tell_control(body),
        }
    }

    /// Connects with the control service anew.
    pub(crate) fn dial_control(&mut self, join: Join, poller: &Poller) {
        if let Self::Others(net) = self {
            net.dial_control(join, poller);
        }
    }
}
