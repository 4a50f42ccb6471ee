from oxiray.dag.output_node import *
