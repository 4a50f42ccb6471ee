from oxiray.util.actor_pool import *
