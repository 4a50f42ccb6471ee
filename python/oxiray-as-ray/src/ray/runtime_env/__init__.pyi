from oxiray.runtime_env import *
