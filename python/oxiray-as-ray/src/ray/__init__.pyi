from oxiray import *

__commit__: str
