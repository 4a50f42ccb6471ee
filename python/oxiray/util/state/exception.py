"""What the functions of `oxiray.util.state` raise."""

from __future__ import annotations


class RayStateApiException(Exception):
    """The session did not say what was asked, or not all of it."""
