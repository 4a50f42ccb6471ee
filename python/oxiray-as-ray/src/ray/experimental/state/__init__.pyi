from oxiray.experimental.state import *
