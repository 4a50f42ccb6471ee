from oxiray.profiling import *
