"""Where objects go when the store is full: what `init()` and the environment say about it."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

from . import _settings

_UNDERSTOOD = frozenset({"object_spilling_config", "automatic_object_spilling_enabled"})


def targets(options: dict[str, Any]) -> list[str]:
    """Directories, or one URL; none: the session's own directory."""
    directory = options.get("object_spilling_directory")
    config = _system_config(options.get("_system_config")).get("object_spilling_config")
    config = config or _settings.text("RAY_object_spilling_config")
    if directory is not None and config:
        raise ValueError(
            "init(object_spilling_directory=) and object_spilling_config say the same thing: "
            "give one of them"
        )
    if directory is not None:
        return _paths("init(object_spilling_directory=)", directory)
    if config:
        return _from_config(config)
    from_environment = _settings.text("RAY_object_spilling_directory")
    return _paths("RAY_object_spilling_directory", from_environment) if from_environment else []


def _system_config(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"init(_system_config=) must be a dict, not {value!r}")
    other = sorted(set(value) - _UNDERSTOOD)
    if other:
        warnings.warn(f"init(_system_config=): no effect here: {', '.join(other)}", stacklevel=4)
    if value.get("automatic_object_spilling_enabled") is False:
        raise ValueError(
            "init(_system_config=): automatic_object_spilling_enabled=False is not supported; a "
            "full store always spills"
        )
    return value


def _from_config(config: Any) -> list[str]:
    """Ray's form: {"type": "filesystem", "params": {"directory_path": ...}}, as JSON or a dict."""
    name = "object_spilling_config"
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except ValueError as error:
            raise ValueError(f"{name} is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise TypeError(f"{name} must be a dict, not {config!r}")
    params = config.get("params")
    kind = config.get("type")
    keys = {"filesystem": "directory_path", "smart_open": "uri"}
    if kind not in keys or not isinstance(params, dict) or keys[kind] not in params:
        raise ValueError(
            f'{name} must be {{"type": "filesystem", "params": {{"directory_path": ...}}}} or '
            f'{{"type": "smart_open", "params": {{"uri": ...}}}}, not {config!r}'
        )
    return _paths(f"{name}[{keys[kind]!r}]", params[keys[kind]])


def _paths(name: str, value: Any) -> list[str]:
    entries = [value] if isinstance(value, (str, os.PathLike)) else value
    if not isinstance(entries, (list, tuple)) or not entries:
        raise TypeError(
            f"{name} must be a directory, a URL or a list of directories, not {value!r}"
        )
    paths = []
    for entry in entries:
        path = os.fspath(entry) if isinstance(entry, (str, os.PathLike)) else None
        if not isinstance(path, str) or not path:
            raise TypeError(f"{name}: {entry!r} is no directory or URL")
        paths.append(path if "://" in path else os.path.abspath(path))
    return paths


def patience_ms() -> int:
    """How long a creator waits for memory while nothing at all moves."""
    return int(_settings.number("OXIRAY_STORE_FULL_TIMEOUT_S", 0, 1e6) * 1000)


def is_told() -> bool:
    return _settings.is_on("RAY_verbose_spill_logs")
