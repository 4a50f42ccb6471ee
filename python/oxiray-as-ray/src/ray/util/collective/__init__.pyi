from oxiray.util.collective import *
