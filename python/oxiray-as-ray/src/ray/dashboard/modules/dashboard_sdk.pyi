from oxiray.dashboard.modules.dashboard_sdk import *
