"""`RayContext`: what `init()` returns."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ._version import __version__, ray_version


class RayContext(Mapping[str, Any]):
    """A started session: a mapping of its addresses, and a context manager that ends it."""

    def __init__(self, address_info: dict[str, Any], dashboard: str = "") -> None:
        self.address_info = address_info
        # With the token, and as Ray's without `http://`.
        self.dashboard_url = address_info.get("webui_url", "")
        # For a browser.
        self._dashboard = dashboard
        self.python_version = sys.version.split()[0]
        self.ray_version = ray_version
        self.oxiray_version = __version__

    def __getitem__(self, key: str) -> Any:
        return self.address_info[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.address_info)

    def __len__(self) -> int:
        return len(self.address_info)

    def __enter__(self) -> RayContext:
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """Ends the session."""
        from ._session import shutdown

        shutdown()

    def __repr__(self) -> str:
        return (
            f"RayContext(dashboard_url={self.dashboard_url!r}, "
            f"python_version={self.python_version!r}, ray_version={self.ray_version!r}, "
            f"oxiray_version={self.oxiray_version!r})"
        )

    def _repr_html_(self) -> str:
        from ._notebook_table import table

        rows = {
            "Python version": self.python_version,
            "Oxiray version": self.oxiray_version,
            "Ray API version": self.ray_version,
        }
        return table(rows, self._dashboard)
