from oxiray.experimental.tf_utils import *
