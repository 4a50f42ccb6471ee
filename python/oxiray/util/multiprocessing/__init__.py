"""The standard library's pool of processes, on actors: on one machine or many."""

from __future__ import annotations

from multiprocessing import JoinableQueue, TimeoutError

from .pool import Pool

__all__ = ["JoinableQueue", "Pool", "TimeoutError"]
