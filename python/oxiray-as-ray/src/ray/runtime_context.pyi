from oxiray.runtime_context import *
