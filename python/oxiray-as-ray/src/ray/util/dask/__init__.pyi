from oxiray.util.dask import *
