from oxiray.dag.dag_node import *
