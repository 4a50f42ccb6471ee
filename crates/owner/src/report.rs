//! What this process holds, and what holds it: for people who look for memory.

use hashbrown::HashMap;
use oxiray_ids::{ObjectId, ProcessId};

use crate::object::{Content, ObjectKey};
use crate::owner::Owner;

/// One object, and what counts on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holding<'a> {
    /// The object.
    pub id: ObjectId,
    /// Who owns it; `None`: this process.
    pub owner: Option<ProcessId>,
    /// What it is, if it is complete.
    pub content: Option<&'a Content>,
    /// References of the program, and whatever else is not counted below.
    pub local: u32,
    /// Tasks under way that take it, in their arguments or inside them.
    pub tasks: u32,
    /// Objects of this process that contain it.
    pub captured: u32,
    /// References that were passed on and not taken over yet.
    pub in_flight: u32,
    /// Other processes that hold it.
    pub borrowers: u32,
    /// Where it was created, if that is recorded.
    pub call_site: Option<&'a str>,
}

impl Owner {
    /// Everything that this process holds.
    pub fn report(&self) -> Vec<Holding<'_>> {
        let mut tasks: HashMap<ObjectKey, u32> = HashMap::new();
        for (_, task) in &self.tasks {
            let spec = &task.spec;
            // A task counts on its returns, too: somebody has to give them their values.
            let counted = spec.refs.iter().chain(&spec.nested).chain(&spec.handle);
            counted.chain(&task.returns).for_each(|key| *tasks.entry(*key).or_default() += 1);
        }
        let mut captured: HashMap<ObjectKey, u32> = HashMap::new();
        for (index, _) in &self.objects {
            let inner = self.contained(ObjectKey(index as u32));
            inner.iter().for_each(|key| *captured.entry(*key).or_default() += 1);
        }
        let mut in_flight: HashMap<ObjectKey, u32> = HashMap::new();
        let passed_on = self.held_for_args.values().chain(self.handed_over.values());
        passed_on.flatten().for_each(|key| *in_flight.entry(*key).or_default() += 1);
        // Of what only recipes take there is nothing but the name.
        let held = self.objects.iter().filter(|(_, object)| object.is_held());
        let all = held.map(|(index, object)| {
            let key = ObjectKey(index as u32);
            let of = |counts: &HashMap<ObjectKey, u32>| counts.get(&key).copied().unwrap_or(0);
            let (tasks, captured, in_flight) = (of(&tasks), of(&captured), of(&in_flight));
            let rare = object.rare.as_deref();
            Holding {
                id: object.id,
                owner: object.owner,
                content: object.content.as_ref(),
                local: object.refs.saturating_sub(tasks + captured + in_flight),
                tasks,
                captured,
                in_flight,
                borrowers: rare.map_or(0, |rare| rare.borrowers.len() as u32),
                call_site: rare.and_then(|rare| rare.call_site.as_deref()),
            }
        });
        all.collect()
    }

    /// Notes where an object was created.
    pub fn set_call_site(&mut self, key: ObjectKey, text: &str) {
        self.objects[key.index()].rare().call_site = Some(text.into());
    }
}
