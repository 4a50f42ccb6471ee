from oxiray.util.iter import *
