from oxiray.util.helpers import *
