from oxiray.dag.constants import *
