"""TensorFlow 1 programs in workers: the driver's mode goes with what it ships.

`tf.disable_v2_behavior()` at the top of a program is a line of the driver. Functions and classes
that use TensorFlow were written for that mode, so a worker enters it before it loads them; one
that gets nothing of TensorFlow does not import it.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

# How payloads are known that use TensorFlow: by the names of its modules.
_SIGNS = (b"tensorflow", b"keras")


def current() -> str | None:
    """None for TensorFlow 2 as it comes, and when it is not imported."""
    compat = getattr(sys.modules.get("tensorflow"), "compat", None)
    v1 = getattr(compat, "v1", None)
    if v1 is None or not hasattr(v1, "control_flow_v2_enabled") or v1.executing_eagerly():
        return None
    # Not eager may mean inside of `with graph.as_default()`; another thread is outside of it.
    from threading import Thread

    eager: list[bool] = []
    thread = Thread(target=lambda: eager.append(v1.executing_eagerly()))
    thread.start()
    thread.join()
    if eager[0]:
        return None
    return "graphs" if v1.control_flow_v2_enabled() else "v1"


def carry(payload: bytes) -> bytes:
    """`payload`, if it uses TensorFlow, such that loading it first enters this process's mode."""
    if not any(sign in payload for sign in _SIGNS):
        return payload
    mode = current()
    return pickle.dumps(_Carried(mode, payload), protocol=5) if mode else payload


class _Carried:
    def __init__(self, mode: str, payload: bytes) -> None:
        self.parts = mode, payload

    def __reduce__(self) -> tuple[Any, ...]:
        return load, self.parts


def load(mode: str, payload: bytes) -> Any:
    """What was pickled, loaded in its mode."""
    enter(mode)
    return pickle.loads(payload)


def enter(mode: str) -> None:
    """Makes TensorFlow of this process behave as the driver's."""
    import logging

    import tensorflow.compat.v1 as tf

    if current() == mode:
        return
    # The driver was warned already that this mode is old.
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        if mode == "v1":
            tf.disable_v2_behavior()
        else:
            tf.disable_eager_execution()
    finally:
        logger.setLevel(level)
