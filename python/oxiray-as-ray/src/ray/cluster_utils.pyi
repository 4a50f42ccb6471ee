from oxiray.cluster_utils import *
