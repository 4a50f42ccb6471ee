from oxiray.dashboard.modules.job import *
