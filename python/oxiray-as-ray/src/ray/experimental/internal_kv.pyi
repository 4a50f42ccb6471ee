from oxiray.experimental.internal_kv import *
