from oxiray.util.multiprocessing.pool import *
