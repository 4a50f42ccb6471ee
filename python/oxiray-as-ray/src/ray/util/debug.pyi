from oxiray.util.debug import *
