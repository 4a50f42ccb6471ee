from oxiray.runtime_env.runtime_env import *
