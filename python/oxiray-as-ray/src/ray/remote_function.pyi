from oxiray.remote_function import *
