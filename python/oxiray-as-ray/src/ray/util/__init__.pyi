from oxiray.util import *
