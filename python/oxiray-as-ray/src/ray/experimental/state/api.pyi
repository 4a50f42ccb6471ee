from oxiray.experimental.state.api import *
