from oxiray.util.queue import *
