from oxiray.experimental.queue import *
