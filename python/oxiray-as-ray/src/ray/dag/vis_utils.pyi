from oxiray.dag.vis_utils import *
