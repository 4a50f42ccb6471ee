from oxiray.dashboard import *
