from oxiray.util.actor_group import *
