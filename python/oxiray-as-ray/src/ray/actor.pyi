from oxiray.actor import *
