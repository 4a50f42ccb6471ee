from oxiray.util.serialization import *
