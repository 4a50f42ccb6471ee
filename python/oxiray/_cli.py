"""The console scripts: they become the native programs inside the package."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def oxiray() -> NoReturn:
    _become("oxiray")


def oxirayd() -> NoReturn:
    _become("oxirayd")


def _become(name: str) -> NoReturn:
    # Which Python the workers of a node are: that of the node's package.
    os.environ["OXIRAY_PYTHON"] = sys.executable
    os.environ["OXIRAY_PYTHON_VERSION"] = f"{sys.version_info[0]}.{sys.version_info[1]}"
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", name)
    os.execv(program, [name, *sys.argv[1:]])
