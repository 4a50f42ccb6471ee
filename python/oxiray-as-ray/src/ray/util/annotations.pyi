from oxiray.util.annotations import *
