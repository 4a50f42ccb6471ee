from oxiray.util.accelerators.accelerators import *
