from oxiray.data import *
