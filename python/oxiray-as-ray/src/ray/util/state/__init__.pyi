from oxiray.util.state import *
