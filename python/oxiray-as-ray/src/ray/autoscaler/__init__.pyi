from oxiray.autoscaler import *
