from oxiray.ray_constants import *
