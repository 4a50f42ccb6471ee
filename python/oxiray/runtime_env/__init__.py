"""Runtime environments: what the workers of a job, task or actor find when they start."""

from __future__ import annotations

from .runtime_env import RuntimeEnv, RuntimeEnvConfig

__all__ = ["RuntimeEnv", "RuntimeEnvConfig"]
