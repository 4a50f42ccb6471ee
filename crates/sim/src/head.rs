//! The control service, and around it what its shell does: connections, what is
//! kept on disk, its end and a new beginning.

use std::collections::BTreeMap;

use oxiray_control::{Change, Control, Event, Now, Outbox, PeerId, Record, Table};
use oxiray_wire::cluster::from_control;

use crate::happening::Happening;
use crate::plan::{MILLISECOND, SECOND};
use crate::world::World;

/// The control service's machine.
#[derive(Default)]
pub(crate) struct Head {
    pub(crate) control: Option<Control>,
    /// What is on its disk.
    records: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    /// Connections, and whose they are.
    pub(crate) connections: BTreeMap<u64, usize>,
    pub(crate) last_connection: u64,
    tick_at: Option<u64>,
}

#[derive(Default)]
struct Wishes {
    sent: Vec<(PeerId, Option<from_control::Body>)>,
    kept: Vec<Change>,
}

impl Outbox for Wishes {
    fn send(&mut self, to: PeerId, body: from_control::Body) {
        self.sent.push((to, Some(body)));
    }
    fn close(&mut self, peer: PeerId) {
        self.sent.push((peer, None));
    }
    fn persist(&mut self, change: Change) {
        self.kept.push(change);
    }
    fn rotate(&mut self, _peer: PeerId) {}
    fn note(&mut self, _text: String) {}
}

impl World {
    fn control_now(&self) -> Now {
        Now { ns: self.now, wall_ms: self.now / MILLISECOND }
    }

    pub(crate) fn start_control(&mut self) {
        let now = self.control_now();
        let kept = self.head.records.iter();
        let records = kept.map(|((table, key), value)| Record {
            table: *table,
            key: key.clone(),
            value: value.clone(),
        });
        let restored = Control::restore(records.collect(), now).expect("what was kept is sound");
        let mut wishes = Wishes::default();
        let control = restored.unwrap_or_else(|| Control::new([7; 16], now, &mut wishes));
        self.head.control = Some(control);
        self.head.tick_at = None;
        self.carry_out_control(wishes);
    }

    /// It is gone, and its connections with it.
    pub(crate) fn stop_control(&mut self) {
        self.head.control = None;
        for (connection, machine) in std::mem::take(&mut self.head.connections) {
            let at = self.delivery(None, Some(machine));
            self.agenda.add(at, Happening::UplinkEnds { machine, connection });
        }
        let back = self.now + self.random.between(SECOND / 2, 3 * SECOND);
        self.agenda.add(back, Happening::ControlStarts);
    }

    pub(crate) fn control_event(&mut self, event: Event) {
        let now = self.control_now();
        let Some(control) = &mut self.head.control else {
            return;
        };
        let mut wishes = Wishes::default();
        control.on_event(event, now, &mut wishes);
        self.report.control_events += 1;
        if self.report.control_events.is_multiple_of(self.plan.validate_once_in) {
            control.validate();
        }
        self.carry_out_control(wishes);
    }

    pub(crate) fn control_tick(&mut self) {
        if self.head.tick_at.take_if(|at| *at <= self.now).is_some() {
            self.control_event(Event::Tick);
        }
    }

    fn carry_out_control(&mut self, wishes: Wishes) {
        for change in wishes.kept {
            match change {
                Change::Put(record) => {
                    self.head.records.insert((record.table, record.key), record.value);
                }
                Change::Delete { table, key } => _ = self.head.records.remove(&(table, key)),
            }
        }
        for (PeerId(connection), body) in wishes.sent {
            let Some(&machine) = self.head.connections.get(&connection) else {
                continue;
            };
            let at = self.delivery(None, Some(machine));
            if let Some(from_control::Body::Welcome(welcome)) = &body {
                self.by_number.insert(welcome.number, machine);
            }
            match body {
                Some(body) => {
                    self.agenda.add(at, Happening::FromControl { machine, connection, body });
                }
                None => {
                    self.head.connections.remove(&connection);
                    self.agenda.add(at, Happening::UplinkEnds { machine, connection });
                }
            }
        }
        let wakeup = self.head.control.as_ref().and_then(Control::next_wakeup);
        if let Some(at) = wakeup.filter(|at| self.head.tick_at.is_none_or(|tick| *at < tick)) {
            let at = at.max(self.now);
            self.head.tick_at = Some(at);
            self.agenda.add(at, Happening::ControlTick);
        }
    }
}
