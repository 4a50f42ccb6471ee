from oxiray._private.ray_constants import *
