//! What passes between a machine and the control service, as the shell of
//! production does it: see `crates/daemon/src/membership.rs` and `net/uplink.rs`.

use oxiray_control::{Event as ControlEvent, PeerId};
use oxiray_ids::ProcessId;
use oxiray_node::Event;
use oxiray_wire::cluster::{Join, Welcome, from_control, to_control};

use crate::happening::Happening;
use crate::machine::Uplink;
use crate::plan::{MILLISECOND, SECOND};
use crate::world::World;

/// Others hear of a node's load at most this often,
const LOAD_EVERY: u64 = 20 * MILLISECOND;
/// and at least this often.
const LOAD_AT_LEAST_EVERY: u64 = SECOND;
/// Between two attempts to find the control service.
const TRY_EVERY: u64 = 100 * MILLISECOND;

impl World {
    /// Asks to be a member, for the first time or again.
    pub(crate) fn dial(&mut self, index: usize) {
        let machine = &self.machines[index];
        if !machine.alive || machine.uplink != Uplink::Away {
            return;
        }
        if self.head.control.is_none() {
            return self.agenda.add(self.now + TRY_EVERY, Happening::Dial(index));
        }
        let join = match &machine.node {
            None => Join { node: Some(machine.info.clone()), ..Join::default() },
            Some(node) => Join {
                node: node.member_info(),
                actors: node.actors_here(),
                jobs: node.jobs_here(),
                cluster: machine.cluster.clone(),
                processes: node.processes_here(),
            },
        };
        self.head.last_connection += 1;
        let connection = self.head.last_connection;
        self.head.connections.insert(connection, index);
        self.machines[index].uplink = Uplink::Asked(connection);
        self.deliver_to_control(index, connection, to_control::Body::Join(join));
    }

    fn deliver_to_control(&mut self, index: usize, connection: u64, body: to_control::Body) {
        let at = self.delivery(Some(index), None);
        self.agenda.add(at, Happening::ToControl { connection, body });
    }

    pub(crate) fn say_to_control(&mut self, index: usize, body: to_control::Body) {
        match self.machines[index].uplink {
            Uplink::There(connection) => self.deliver_to_control(index, connection, body),
            Uplink::Asked(_) | Uplink::Away => self.machines[index].backlog.push(body),
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
        if [Uplink::Asked(connection), Uplink::There(connection)].contains(&machine.uplink) {
            machine.uplink = Uplink::Away;
            self.agenda.add(self.now + TRY_EVERY, Happening::Dial(index));
        }
    }

    /// A machine hears from the control service.
    pub(crate) fn machine_hears(
        &mut self,
        index: usize,
        connection: u64,
        body: from_control::Body,
    ) {
        use from_control::Body;
        let uplink = self.machines[index].uplink;
        let known = [Uplink::Asked(connection), Uplink::There(connection)].contains(&uplink);
        if !self.machines[index].alive || !known {
            return;
        }
        match body {
            Body::Welcome(welcome) => self.on_welcome(index, connection, welcome),
            Body::Ping(empty) => {
                let pong = to_control::Body::Pong(empty);
                self.deliver_to_control(index, connection, pong);
            }
            Body::NodeJoined(info) => self.event(index, Event::NodeJoined(info)),
            Body::NodeLeft(info) => self.on_left(index, info.number, info.left),
            Body::Loads(loads) => self.event(index, Event::Loads(loads.loads)),
            Body::OfProcess(said) => self.event(index, Event::Routed(said)),
            Body::ForProcess(said) => {
                if let Some(body) = said.message.and_then(|message| message.body) {
                    self.event(index, Event::Answered(ProcessId(said.process), body));
                }
            }
            Body::Refused(why) => {
                // None of these stands still, so none is declared dead by mistake.
                panic!("node {} is refused: {}", self.machines[index].number(), why.text);
            }
            Body::Kv(_) | Body::Tokens(_) | Body::State(_) => {}
        }
    }

    fn on_left(&mut self, index: usize, number: u32, why: String) {
        self.machines[index].left.insert(number);
        self.event(index, Event::NodeLeft(number, why));
    }

    fn on_welcome(&mut self, index: usize, connection: u64, welcome: Welcome) {
        self.machines[index].uplink = Uplink::There(connection);
        for body in std::mem::take(&mut self.machines[index].backlog) {
            self.deliver_to_control(index, connection, body);
        }
        let machine = &mut self.machines[index];
        let Some(node) = &machine.node else {
            machine.begin(&welcome);
            for info in welcome.nodes {
                self.event(index, Event::NodeJoined(info));
            }
            for happening in std::mem::take(&mut self.machines[index].early) {
                self.agenda.add(self.now, happening);
            }
            return;
        };
        let known = node.nodes();
        for number in known {
            if !welcome.nodes.iter().any(|info| info.number == number) {
                self.on_left(index, number, "it left while the head was away".into());
            }
        }
        for info in welcome.nodes {
            let node = self.machines[index].node.as_ref().expect("is a member");
            if node.node_info(info.number).is_none() {
                self.event(index, Event::NodeJoined(info));
            }
        }
        self.machines[index].told = None;
        self.machines[index].told_at = 0;
        self.event(index, Event::Reattached);
    }

    /// After every event: others hear of the load, if it is time.
    pub(crate) fn tell_load(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        let Some(node) = machine.node.as_ref().filter(|_| self.now >= machine.told_at + LOAD_EVERY)
        else {
            return;
        };
        let load = node.load();
        if machine.told.as_ref() != Some(&load) || self.now >= machine.told_at + LOAD_AT_LEAST_EVERY
        {
            machine.told = Some(load.clone());
            machine.told_at = self.now;
            self.say_to_control(index, to_control::Body::Load(load));
            self.agenda.add(self.now + LOAD_AT_LEAST_EVERY, Happening::LoadDue(index));
        }
    }
}
