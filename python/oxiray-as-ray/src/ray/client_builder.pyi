from oxiray.client_builder import *
