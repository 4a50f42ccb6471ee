from oxiray.util.state.common import *
