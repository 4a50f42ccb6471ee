from oxiray.util.collective.collective import *
