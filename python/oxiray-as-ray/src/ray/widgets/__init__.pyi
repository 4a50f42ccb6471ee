from oxiray.widgets import *
