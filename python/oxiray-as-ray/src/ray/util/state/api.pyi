from oxiray.util.state.api import *
