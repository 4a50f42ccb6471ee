from oxiray._private.state import *
