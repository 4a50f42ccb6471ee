from oxiray.experimental.ui import *
