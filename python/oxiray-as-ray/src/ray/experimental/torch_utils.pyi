from oxiray.experimental.torch_utils import *
