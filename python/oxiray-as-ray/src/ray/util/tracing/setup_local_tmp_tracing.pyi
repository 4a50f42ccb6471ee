from oxiray.util.tracing.setup_local_tmp_tracing import *
