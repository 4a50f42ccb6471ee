"""A module whose import takes a second, as a user's may."""

import time

time.sleep(1)
