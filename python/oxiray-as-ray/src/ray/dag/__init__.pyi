from oxiray.dag import *
