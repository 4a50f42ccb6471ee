from oxiray.internal import *
