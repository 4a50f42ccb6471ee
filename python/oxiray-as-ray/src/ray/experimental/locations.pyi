from oxiray.experimental.locations import *
