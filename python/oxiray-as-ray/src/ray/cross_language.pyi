from oxiray.cross_language import *
