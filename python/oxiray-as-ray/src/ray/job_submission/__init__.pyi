from oxiray.job_submission import *
