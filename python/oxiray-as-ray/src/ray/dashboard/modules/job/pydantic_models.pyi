from oxiray.dashboard.modules.job.pydantic_models import *
