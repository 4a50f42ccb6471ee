"""An older place of `util.multiprocessing`."""

from ..util.multiprocessing import Pool, TimeoutError

__all__ = ["Pool", "TimeoutError"]
