from oxiray._private import *
