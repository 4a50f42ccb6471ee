//! Jobs: the programs of drivers, and the workers that serve them.
//!
//! A worker serves one job: it may have imported that job's modules and keeps
//! their state. One that was started before it was needed joins the job of whoever
//! first uses it.

use oxiray_ids::{JobId, ProcessId};
use oxiray_wire::cluster::{Job, to_control};
use oxiray_wire::control::{Empty, JobConfig, ProcessKind, from_node};

use crate::event::Outbox;
use crate::node::Node;
use crate::process::Role;

impl Node {
    /// A driver's job: its id is made of the node's number and a count.
    pub(crate) fn begin_job(&mut self, driver: ProcessId, config: JobConfig) -> JobId {
        self.last_job += 1;
        self.has_worked = true;
        let number = (self.number << 16) | (self.last_job & 0xffff);
        let job = self.setup.job.unwrap_or(JobId(number.to_le_bytes()));
        let config = JobConfig { job: job.0.to_vec(), driver: driver.0, ..config };
        self.jobs.insert(job, config);
        job
    }

    /// The job of a driver, for the control service.
    pub fn job_of(&self, driver: ProcessId) -> Option<Job> {
        let process = self.processes.get(&driver)?;
        let config = self.jobs.get(&process.job?)?;
        Some(Job {
            id: config.job.clone(),
            driver: driver.0,
            namespace: config.namespace.clone(),
            entrypoint: config.entrypoint.clone(),
            submission: config.submission.clone(),
            pid: process.pid,
            started_ms: self.wall_ms(process.started),
            ended_ms: 0,
            failure: String::new(),
        })
    }

    /// The jobs of this node's drivers.
    pub fn jobs_here(&self) -> Vec<Job> {
        let processes = self.processes.iter();
        // A job's workers have it, too.
        let drivers = processes.filter(|(_, process)| process.kind == ProcessKind::Driver);
        drivers.filter_map(|(id, _)| self.job_of(*id)).collect()
    }

    /// Whom what a worker prints goes to, if to anyone.
    pub fn reader_of(&self, worker: ProcessId) -> Option<ProcessId> {
        let job = self.processes.get(&worker)?.job?;
        let config = self.jobs.get(&job).filter(|config| config.log_to_driver)?;
        Some(ProcessId(config.driver))
    }

    /// A worker serves a job from now on.
    pub(crate) fn bind_job(
        &mut self,
        worker: ProcessId,
        job: Option<JobId>,
        out: &mut impl Outbox,
    ) {
        let Some(process) = self.processes.get_mut(&worker).filter(|w| w.job.is_none()) else {
            return;
        };
        process.job = job;
        if let Some(config) = job.and_then(|job| self.jobs.get(&job)) {
            // A foreign driver's lines go through its node, which must know the worker.
            let driver = ProcessId(config.driver);
            out.send(worker, from_node::Body::JoinJob(config.clone()));
            self.get_to_know_driver(driver, out);
        }
    }

    fn get_to_know_driver(&mut self, driver: ProcessId, out: &mut impl Outbox) {
        if self.is_elsewhere(driver) {
            self.get_to_know(driver, out);
        }
    }

    /// A driver has gone: its idle workers go, too.
    pub(crate) fn end_job(&mut self, job: JobId, out: &mut impl Outbox) {
        let idle = self.pool.idle.clone();
        for id in idle {
            let Some(process) = self.processes.get_mut(&id).filter(|p| p.job == Some(job)) else {
                continue;
            };
            process.role = Role::Leaving;
            self.pool.forget(id);
            out.send(id, from_node::Body::Exit(Empty {}));
        }
    }

    /// Tells the control service of a job that begins or ends.
    pub(crate) fn tell_of_job(&mut self, job: Job, out: &mut impl Outbox) {
        self.tell_control(to_control::Body::Job(job), out);
    }
}
