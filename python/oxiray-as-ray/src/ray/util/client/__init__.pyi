from oxiray.util.client import *
