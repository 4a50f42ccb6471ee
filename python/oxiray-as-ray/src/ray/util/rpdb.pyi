from oxiray.util.rpdb import *
