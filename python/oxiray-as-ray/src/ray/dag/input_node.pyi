from oxiray.dag.input_node import *
