//! Programs: those that run, and the last that ended.

use oxiray_ids::ProcessId;
use oxiray_wire::cluster::Job;
use prost::Message;

use crate::control::Control;
use crate::event::{Change, Now, Outbox, Table};

/// Ended ones that are remembered.
const MOST_ENDED: usize = 1_000;

/// How a program ended that was gone when its node came back: until that says more.
pub(crate) const UNSEEN_END: &str =
    "its program ended while the control service was away, nobody saw how";

impl Control {
    pub(crate) fn on_job(&mut self, number: u32, job: Job, out: &mut impl Outbox) {
        if job.id.is_empty() || ProcessId(job.driver).node() != number {
            out.note(format!("node {number} speaks of job {:?} of another node", job.id));
            return;
        }
        let is_known = |before: &Job| match before.ended_ms {
            0 => *before == job,
            // Its node knows how it ended, and may say so after it joined again.
            _ => before.failure != UNSEEN_END || job.ended_ms == 0,
        };
        if !self.jobs.get(&job.id).is_some_and(is_known) {
            self.write_job(job, out);
        }
    }

    fn write_job(&mut self, job: Job, out: &mut impl Outbox) {
        out.persist(Change::put(Table::Job, job.id.clone(), job.encode_to_vec()));
        let is_over = job.ended_ms != 0;
        let id = job.id.clone();
        let before = self.jobs.insert(id.clone(), job);
        if is_over && before.is_none_or(|before| before.ended_ms == 0) {
            self.ended_jobs.push_back(id);
        }
        if self.ended_jobs.len() > MOST_ENDED
            && let Some(oldest) = self.ended_jobs.pop_front()
        {
            self.jobs.remove(&oldest);
            out.persist(Change::delete(Table::Job, oldest));
        }
    }

    /// These programs, if they ran, do so no more, and none of them said that it would end:
    /// `why` that is.
    pub(crate) fn end_jobs(
        &mut self,
        is_over: impl Fn(&Job) -> bool,
        why: &str,
        now: Now,
        out: &mut impl Outbox,
    ) {
        let over = self.jobs.values().filter(|job| job.ended_ms == 0 && is_over(job));
        for job in over.cloned().collect::<Vec<_>>() {
            let (ended_ms, failure) = (now.wall_ms.max(1), why.to_owned());
            self.write_job(Job { ended_ms, failure, ..job }, out);
        }
    }
}
