from oxiray.dashboard.modules import *
