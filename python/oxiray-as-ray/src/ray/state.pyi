from oxiray.state import *
