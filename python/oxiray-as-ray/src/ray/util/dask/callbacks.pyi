from oxiray.util.dask.callbacks import *
