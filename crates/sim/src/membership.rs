//! The connections of machines with the control service. What passes over them, and when,
//! the nodes decide.

use oxiray_control::{Event as ControlEvent, PeerId};
use oxiray_node::Event;
use oxiray_wire::cluster::{Join, Welcome, from_control, to_control};
use oxiray_wire::control::Empty;

use crate::happening::Happening;
use crate::plan::MILLISECOND;
use crate::world::World;

/// A machine that could not become a member tries again after this.
const TRY_EVERY: u64 = 100 * MILLISECOND;

impl World {
    /// A machine asks to be a member for the first time.
    pub(crate) fn join(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        if machine.alive && machine.node.is_none() {
            machine.asked_at = self.now;
            let machine = &self.machines[index];
            self.dial(index, Join { node: Some(machine.info.clone()), ..Join::default() });
        }
    }

    /// Makes a new connection with the control service, over which this is said first.
    pub(crate) fn dial(&mut self, index: usize, join: Join) {
        self.say_to_control(index, to_control::Body::Parting(Empty {}));
        if let Some(old) = self.machines[index].connection.take() {
            let at = self.delivery(Some(index), None);
            self.agenda.add(at, Happening::ControlSeesEnd { connection: old });
        }
        self.head.last_connection += 1;
        let connection = self.head.last_connection;
        self.machines[index].connection = Some(connection);
        if self.head.control.is_none() {
            let at = self.delivery(None, Some(index));
            return self.agenda.add(at, Happening::UplinkEnds { machine: index, connection });
        }
        self.head.connections.insert(connection, index);
        self.say_to_control(index, to_control::Body::Join(join));
    }

    pub(crate) fn say_to_control(&mut self, index: usize, body: to_control::Body) {
        // What is said over a connection that just broke is lost.
        if let Some(connection) = self.machines[index].connection {
            let at = self.delivery(Some(index), None);
            self.agenda.add(at, Happening::ToControl { connection, body });
        }
    }

    pub(crate) fn control_hears(&mut self, connection: u64, body: to_control::Body) {
        if self.head.connections.contains_key(&connection) {
            self.control_event(ControlEvent::Message(PeerId(connection), body));
        }
    }

    pub(crate) fn control_sees_end(&mut self, connection: u64) {
        if self.head.connections.remove(&connection).is_some() {
            self.control_event(ControlEvent::Closed(PeerId(connection)));
        }
    }

    pub(crate) fn uplink_ends(&mut self, index: usize, connection: u64) {
        let machine = &mut self.machines[index];
        if machine.connection != Some(connection) {
            return;
        }
        machine.connection = None;
        match machine.node.is_some() {
            true => self.event(index, Event::ControlLost),
            false => self.agenda.add(self.now + TRY_EVERY, Happening::Join(index)),
        }
    }

    /// A machine hears from the control service.
    pub(crate) fn machine_hears(
        &mut self,
        index: usize,
        connection: u64,
        body: from_control::Body,
    ) {
        let machine = &self.machines[index];
        if !machine.alive || machine.connection != Some(connection) {
            return;
        }
        match self.without_lease(body) {
            from_control::Body::Welcome(welcome) if machine.node.is_none() => {
                self.begin(index, welcome);
            }
            body => self.event(index, Event::FromControl(body)),
        }
    }

    /// A machine became a member: its node begins.
    fn begin(&mut self, index: usize, welcome: Welcome) {
        let machine = &mut self.machines[index];
        machine.begin(welcome.number, machine.asked_at);
        self.event(index, Event::FromControl(from_control::Body::Welcome(welcome)));
        for happening in std::mem::take(&mut self.machines[index].early) {
            self.agenda.add(self.now, happening);
        }
    }
}
