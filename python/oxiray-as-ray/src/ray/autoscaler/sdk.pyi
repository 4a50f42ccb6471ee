from oxiray.autoscaler.sdk import *
