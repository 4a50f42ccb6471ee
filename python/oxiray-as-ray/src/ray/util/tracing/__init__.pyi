from oxiray.util.tracing import *
