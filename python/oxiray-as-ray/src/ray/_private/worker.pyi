from oxiray._private.worker import *
