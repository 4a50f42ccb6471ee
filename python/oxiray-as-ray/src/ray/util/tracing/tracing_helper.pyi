from oxiray.util.tracing.tracing_helper import *
