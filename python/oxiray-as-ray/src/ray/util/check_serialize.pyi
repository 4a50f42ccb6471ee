from oxiray.util.check_serialize import *
