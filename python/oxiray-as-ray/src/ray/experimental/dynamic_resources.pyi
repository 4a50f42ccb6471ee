from oxiray.experimental.dynamic_resources import *
