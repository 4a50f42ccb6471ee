from oxiray._private.services import *
