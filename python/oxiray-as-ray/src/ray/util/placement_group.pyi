from oxiray.util.placement_group import *
