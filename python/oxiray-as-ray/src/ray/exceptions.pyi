from oxiray.exceptions import *
