from oxiray.util.metrics import *
