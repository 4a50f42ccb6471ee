from oxiray.dag.class_node import *
