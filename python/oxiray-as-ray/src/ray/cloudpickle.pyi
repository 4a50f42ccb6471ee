from oxiray.cloudpickle import *
