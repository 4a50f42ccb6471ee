from oxiray.experimental.tqdm_ray import *
