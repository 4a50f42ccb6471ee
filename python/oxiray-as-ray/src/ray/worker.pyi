from oxiray.worker import *
