"""By Ray's place for it: `job_submission`."""
