from oxiray.util.scheduling_strategies import *
