"""The runtime environment of a job, from what a command is given."""

from __future__ import annotations

import json
import sys
from typing import Any


def parse_runtime_env_args(
    runtime_env: str | None = None,
    runtime_env_json: str | None = None,
    working_dir: str | None = None,
) -> dict[str, Any]:
    """The fields of a YAML or JSON file, or of a text in JSON; with `working_dir`, if it is given,
    instead of theirs."""
    if runtime_env is not None and runtime_env_json is not None:
        raise ValueError("Only one of --runtime_env and --runtime-env-json can be provided.")
    environment: Any = {}
    if runtime_env is not None:
        environment = _read(runtime_env)
    elif runtime_env_json is not None:
        environment = json.loads(runtime_env_json)
    if not isinstance(environment, dict):
        source = "--runtime-env-json" if runtime_env is None else f"--runtime-env {runtime_env}"
        raise ValueError(f"{source} must have the fields of a runtime environment")
    if working_dir is not None:
        if environment.get("working_dir") not in (None, working_dir):
            print("--working-dir counts, not that of --runtime-env", file=sys.stderr)
        environment["working_dir"] = working_dir
    return environment


def _read(path: str) -> Any:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        import yaml  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise ValueError(
            f"--runtime-env {path} is not JSON, and to read YAML the package pyyaml is needed"
        ) from None
    return yaml.safe_load(text)
