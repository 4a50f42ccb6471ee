from oxiray.types import *
