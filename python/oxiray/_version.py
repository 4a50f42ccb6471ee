"""Versions: our own, and that of the Ray whose API we follow."""

__version__ = "0.1.0"
ray_version = "2.60.0"
