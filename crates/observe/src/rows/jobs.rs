//! Programs: those that came by themselves, and jobs that were handed in, whose program may not
//! have come yet, or never does.

use oxiray_ids::ProcessId;
use oxiray_wire::cluster::Job;
use oxiray_wire::control::Submission;
use serde_json::Value;

use super::{Nodes, hex, if_said, if_set};
use crate::row::{row, words};

/// The namespace of those who answer for jobs: their own programs are nobody's.
pub const CLERKS: &str = "_oxiray_jobs";

/// The name of the actor that runs a job.
pub(crate) fn supervisor(submission: &str) -> String {
    format!("job-{submission}")
}

words! {
    /// How a program fares.
    JobStatus {
        /// It was handed in, and has not begun.
        Pending = "PENDING",
        /// It runs.
        Running = "RUNNING",
        /// It was stopped.
        Stopped = "STOPPED",
        /// It ended well.
        Succeeded = "SUCCEEDED",
        /// It ended badly.
        Failed = "FAILED",
    }
}

words! {
    /// How a program came.
    JobType {
        /// It was handed in.
        Submission = "SUBMISSION",
        /// By itself.
        Driver = "DRIVER",
    }
}

/// What a row is made of: a program, a job that was handed in, or both.
#[derive(Clone, Default, Debug)]
pub(crate) struct Program {
    job: Option<Job>,
    submission: Option<(String, Value)>,
}

/// The programs, each with how it was handed in; and what was, without a program.
pub(crate) fn programs(jobs: Vec<Job>, submissions: &[Submission]) -> Vec<Program> {
    let mut handed: Vec<Program> = submissions
        .iter()
        .map(|submission| {
            let said = serde_json::from_slice(&submission.said).unwrap_or_default();
            Program { job: None, submission: Some((submission.id.clone(), said)) }
        })
        .collect();
    let mut others = Vec::new();
    for job in jobs.into_iter().filter(|job| job.namespace != CLERKS) {
        let is_of = |program: &&mut Program| {
            let id = program.submission.as_ref().map(|(id, _)| id.as_str());
            program.job.is_none() && id == Some(&job.submission)
        };
        match handed.iter_mut().find(is_of) {
            Some(program) => program.job = Some(job),
            None => others.push(Program { job: Some(job), submission: None }),
        }
    }
    others.extend(handed);
    others
}

impl Program {
    /// The id of one that says that it runs: whether that is so, its supervisor knows.
    pub(crate) fn said_to_run(&self) -> Option<&str> {
        let (id, said) = self.submission.as_ref()?;
        (said["status"] == "RUNNING").then_some(id)
    }

    /// Nobody runs it any more, and nobody has written that down.
    pub(crate) fn is_lost(&mut self) {
        if let Some((_, said)) = &mut self.submission {
            said["status"] = "FAILED".into();
            said["message"] = "The process that ran it is gone.".into();
        }
    }

    fn said(&self, name: &str) -> Option<&Value> {
        self.submission.as_ref()?.1.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Option<String> {
        self.said(name)?.as_str().map(str::to_owned)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.said(name)?.as_u64()
    }

    fn status(&self) -> JobStatus {
        if self.submission.is_some() {
            return match self.said("status").and_then(Value::as_str) {
                Some("RUNNING") => JobStatus::Running,
                Some("STOPPED") => JobStatus::Stopped,
                Some("SUCCEEDED") => JobStatus::Succeeded,
                Some("FAILED") => JobStatus::Failed,
                _ => JobStatus::Pending,
            };
        }
        match self.job.as_ref().map(|job| (job.ended_ms, job.failure.is_empty())) {
            None | Some((0, _)) => JobStatus::Running,
            Some((_, true)) => JobStatus::Succeeded,
            Some((_, false)) => JobStatus::Failed,
        }
    }
}

row! {
    /// A program.
    JobRow of program: &Program, nodes: &Nodes;
    /// The program; of a job whose program has not come, its submission_id.
    job_id: String [Id, Searched, Table] = match (&program.job, &program.submission) {
        (Some(job), _) => hex(&job.id),
        (None, Some((id, _))) => id.clone(),
        (None, None) => String::new(),
    };
    /// The id by which it was handed in.
    submission_id: Option<String> [Searched, Table] =
        program.submission.as_ref().map(|(id, _)| id.clone());
    /// How it came.
    kind as "type": JobType = match program.submission {
        Some(_) => JobType::Submission,
        None => JobType::Driver,
    };
    /// How it fares.
    status: JobStatus [Table, State] = program.status();
    /// The command that started it.
    entrypoint: String [Searched, Table] = program.text("entrypoint").unwrap_or_else(|| {
        program.job.as_ref().map(|job| job.entrypoint.clone()).unwrap_or_default()
    });
    /// The driver's process.
    driver_pid: Option<u32> [Table] = program.job.as_ref().map(|job| job.pid);
    /// The driver's node.
    driver_node_id: Option<String> = program.text("driver_node_id").or_else(|| {
        nodes.id(ProcessId(program.job.as_ref()?.driver).node())
    });
    /// In which names of its actors are.
    namespace: String [Searched] =
        program.job.as_ref().map(|job| job.namespace.clone()).unwrap_or_default();
    /// When it began, or was handed in.
    start_time_ms: Option<u64> [Table] = program
        .number("start_time")
        .or_else(|| if_set(program.job.as_ref()?.started_ms));
    /// When it ended.
    end_time_ms: Option<u64> [Table] = match program.submission {
        Some(_) => program.number("end_time"),
        None => program.job.as_ref().and_then(|job| if_set(job.ended_ms)),
    };
    /// What it failed of, or what else there is to say.
    message: Option<String> = match program.submission {
        Some(_) => program.text("message"),
        None => program.job.as_ref().and_then(|job| if_said(&job.failure)),
    };
    /// The file of its node's logs in which is what it prints, if it was handed in and has begun.
    log_file: Option<String> = program.text("driver_node_id").and_then(|_| {
        let (id, _) = program.submission.as_ref()?;
        Some(format!("job-driver-{id}.log"))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Cell as _;

    fn job(id: u8, submission: &str, namespace: &str) -> Job {
        let (submission, namespace) = (submission.into(), namespace.into());
        Job { id: vec![id, 0, 0, 0], submission, namespace, pid: 7, ..Job::default() }
    }

    fn handed(id: &str, said: &str) -> Submission {
        Submission { id: id.into(), said: said.into() }
    }

    fn rows(jobs: Vec<Job>, submissions: &[Submission]) -> Vec<Value> {
        let programs = programs(jobs, submissions);
        programs.iter().map(|program| JobRow::of(program, &Nodes::default()).json()).collect()
    }

    #[test]
    fn a_job_is_one_row_with_its_program_and_without() {
        let jobs = vec![job(1, "", ""), job(2, "a", ""), job(3, "", CLERKS), job(4, "a", "")];
        let said = r#"{"status":"RUNNING","entrypoint":"e","driver_node_id":"n","start_time":5}"#;
        let found = rows(jobs, &[handed("a", said), handed("b", r#"{"status":"PENDING"}"#)]);
        let shown = |name: &str| found.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
        // The second program of a job is a row of its own.
        assert_eq!(shown("job_id"), ["01000000", "04000000", "02000000", "b"]);
        assert_eq!(shown("type"), ["DRIVER", "DRIVER", "SUBMISSION", "SUBMISSION"]);
        assert_eq!(shown("status"), ["RUNNING", "RUNNING", "RUNNING", "PENDING"]);
        assert_eq!(found[2]["log_file"], "job-driver-a.log");
        assert_eq!((&found[2]["driver_pid"], &found[3]["driver_pid"]), (&7.into(), &Value::Null));
        assert_eq!(found[3]["log_file"], Value::Null);
    }

    #[test]
    fn what_nobody_runs_has_failed_and_nonsense_is_pending() {
        let mut found = programs(Vec::new(), &[handed("a", r#"{"status":"RUNNING"}"#)]);
        assert_eq!(found[0].said_to_run(), Some("a"));
        found[0].is_lost();
        assert_eq!((found[0].status(), found[0].said_to_run()), (JobStatus::Failed, None));
        for said in ["", "[1", "3", r#"{"status":9}"#] {
            assert_eq!(rows(Vec::new(), &[handed("x", said)])[0]["status"], "PENDING", "{said}");
        }
    }
}
