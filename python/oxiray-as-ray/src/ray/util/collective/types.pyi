from oxiray.util.collective.types import *
