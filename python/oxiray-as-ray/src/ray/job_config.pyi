from oxiray.job_config import *
