from oxiray.dashboard.modules.job.sdk import *
