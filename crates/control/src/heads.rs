//! Where the control services of the cluster are: this one, which reigns, and those that wait to take
//! over from it. Members know all of them before they need to.

use oxiray_wire::cluster::{Heads, from_control};

use crate::control::Control;
use crate::event::Outbox;

impl Control {
    /// Says where they are, this one first; members hear of it if that is news.
    pub fn set_heads(&mut self, heads: Vec<String>, out: &mut impl Outbox) {
        if self.heads == heads {
            return;
        }
        self.heads.clone_from(&heads);
        self.broadcast(None, from_control::Body::Heads(Heads { addresses: heads }), out);
    }
}
