from oxiray.experimental.multiprocessing import *
