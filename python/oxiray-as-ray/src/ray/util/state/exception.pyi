from oxiray.util.state.exception import *
