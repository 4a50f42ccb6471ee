from oxiray.util.client_connect import *
