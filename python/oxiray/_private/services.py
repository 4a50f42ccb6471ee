"""Where this node is, under Ray's private name."""

from __future__ import annotations

from .._node_address import get_node_ip_address

__all__ = ["get_node_ip_address"]
