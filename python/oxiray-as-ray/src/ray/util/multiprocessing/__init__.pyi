from oxiray.util.multiprocessing import *
