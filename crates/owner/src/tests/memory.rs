//! Tasks whose workers end because memory runs out.

use oxiray_ids::{ActorId, FunctionId, JobId, ProcessId, TaskId};
use oxiray_wire::control::MemoryEnd;
use oxiray_wire::frame::{FailureCode, Returns};
use smallvec::SmallVec;

use super::hostile::Ears;
use crate::memory::MemoryRetries;
use crate::object::{Content, ObjectKey, SmallBytes};
use crate::owner::Owner;
use crate::task::{Target, TaskSpec};
use crate::why::Wait;

const SECOND: u64 = 1_000_000_000;

struct Bed {
    owner: Owner,
    ears: Ears,
    shape: u32,
    got: ObjectKey,
    worker: u64,
}

impl Bed {
    /// A process that has submitted one task.
    fn new(retries: i32, memory: MemoryRetries) -> Self {
        let (mut owner, mut ears) = (Owner::new(ProcessId(0)), Ears::default());
        owner.set_memory_retries(memory);
        let (shape, stats) = (owner.shape(), owner.function());
        let target = Target::Function { function: FunctionId([0; 16]), stats, shape };
        let id = TaskId::new(ActorId::home(JobId([1; 4]), ProcessId(0)), ProcessId(0), 1);
        let spec = TaskSpec {
            id,
            target,
            name: "hog".into(),
            returns: Returns::Fixed(1),
            args: SmallBytes::new(),
            refs: SmallVec::new(),
            nested: SmallVec::new(),
            handle: None,
            retries,
            attempt: 0,
            recorded: false,
            parent: TaskId::NIL,
        };
        let got = owner.submit(spec, &mut ears)[0];
        Self { owner, ears, shape, got, worker: 10 }
    }

    /// A worker runs it, and ends like this.
    fn falls(&mut self, how: MemoryEnd) {
        let pushed = self.ears.tokens.len();
        self.worker += 1;
        let worker = ProcessId(self.worker);
        self.owner.on_granted(self.shape, self.worker, worker, Vec::new(), &mut self.ears);
        assert_eq!(self.ears.tokens.len(), pushed + 1, "it is pushed");
        self.owner.on_process_died(worker, how, "memory ran out", &mut self.ears);
        self.owner.validate();
    }

    fn waits(&self) -> Option<Wait> {
        self.owner.reasons(1, |_, _| true).first().map(|reason| reason.wait)
    }

    fn after(&mut self, pause: u64) {
        self.owner.set_now(self.owner.now + pause);
        self.owner.on_tick(&mut self.ears);
        self.owner.validate();
    }

    fn code(&self) -> Option<FailureCode> {
        match self.owner.content(self.got)? {
            Content::Failed(failure) => Some(failure.code),
            _ => panic!("nothing ever returns"),
        }
    }
}

#[test]
fn it_is_tried_again_apart_from_its_retries_and_ever_later() {
    let mut bed = Bed::new(1, MemoryRetries::default());
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
        bed.falls(MemoryEnd::Shared);
        assert_eq!(bed.waits(), Some(Wait::Memory));
        bed.after(pause * SECOND - 1);
        assert_eq!(bed.waits(), Some(Wait::Memory));
        bed.after(1);
        assert_eq!(bed.waits(), Some(Wait::Worker(bed.shape)));
    }
    bed.falls(MemoryEnd::Not);
    assert_eq!(bed.waits(), Some(Wait::Worker(bed.shape)), "that is what its retry is for");
    bed.falls(MemoryEnd::Not);
    assert_eq!(bed.code(), Some(FailureCode::WorkerCrashed));
}

#[test]
fn alone_it_is_given_up_after_a_few() {
    let mut bed = Bed::new(-1, MemoryRetries::default());
    for _ in 0..2 {
        bed.falls(MemoryEnd::Alone);
        bed.after(60 * SECOND);
    }
    bed.falls(MemoryEnd::Alone);
    assert_eq!(bed.code(), Some(FailureCode::OutOfMemory));
}

#[test]
fn what_may_not_go_again_does_not() {
    let retries = MemoryRetries::default();
    for (mut bed, how) in [
        (Bed::new(0, retries), MemoryEnd::Shared),
        (Bed::new(3, MemoryRetries { most: Some(0), ..retries }), MemoryEnd::Shared),
        (Bed::new(3, retries), MemoryEnd::OverLimit),
    ] {
        bed.falls(how);
        assert_eq!(bed.code(), Some(FailureCode::OutOfMemory));
    }
}
