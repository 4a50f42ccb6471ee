from oxiray.dashboard.modules.job.common import *
