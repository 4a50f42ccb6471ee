"""The console scripts: they become the native programs inside the package."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def oxiray() -> NoReturn:
    become("oxiray", sys.argv[1:])


def oxirayd() -> NoReturn:
    become("oxirayd", sys.argv[1:])


def become(name: str, arguments: list[str]) -> NoReturn:
    """Replaces this process by one of the package's programs."""
    # Which Python the workers of a node are: that of the node's package.
    os.environ["OXIRAY_PYTHON"] = sys.executable
    os.environ["OXIRAY_PYTHON_VERSION"] = f"{sys.version_info[0]}.{sys.version_info[1]}"
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", name)
    os.execv(program, [name, *arguments])
