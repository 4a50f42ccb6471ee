from oxiray.util.accelerators import *
