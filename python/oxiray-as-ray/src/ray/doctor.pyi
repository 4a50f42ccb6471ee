from oxiray.doctor import *
