from oxiray.util.dask.scheduler import *
