"""Changing what a node has while it runs, which cannot be done: Ray took it out, too."""

from __future__ import annotations

from typing import NoReturn


def set_resource(resource_name: str, capacity: float, node_id: str | None = None) -> NoReturn:
    raise DeprecationWarning(
        "set_resource() has been removed: name a node's resources when it is started, with "
        "init(resources=) or `oxiray start --resources`"
    )
