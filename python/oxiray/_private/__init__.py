"""What programs were seen to reach for though it is private, as adapters to what is here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = ("ray_constants", "services", "state", "worker")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}: of Ray's private modules there are "
            f"{', '.join(_MODULES)} (docs/compatibility.md)"
        )
    return import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
