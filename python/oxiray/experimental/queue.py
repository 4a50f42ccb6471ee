"""An older place of `util.queue`."""

from ..util.queue import Empty, Full, Queue

__all__ = ["Empty", "Full", "Queue"]
