"""Types of accelerators, for the option `accelerator_type`."""

from .accelerators import *  # noqa: F403
