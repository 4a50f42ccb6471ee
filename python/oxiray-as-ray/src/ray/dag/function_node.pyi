from oxiray.dag.function_node import *
