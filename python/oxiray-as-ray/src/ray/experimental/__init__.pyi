from oxiray.experimental import *
