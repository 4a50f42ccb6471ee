"""`JobConfig`: what a driver's job is given, as `init(job_config=)` takes it."""

from __future__ import annotations

import json
from typing import Any

from ._logging_config import LoggingConfig

_LIFETIMES = ("detached", "non_detached")


class JobConfig:
    """The settings of one job.

    Args:
        jvm_options: kept; there are no Java workers.
        code_search_path: directories in which workers look for modules, too.
        runtime_env: the job's environment, as of `init(runtime_env=)`.
        metadata: kept.
        ray_namespace: the job's namespace, as of `init(namespace=)`.
        default_actor_lifetime: "detached" or "non_detached", of actors that do not say.
    """

    def __init__(
        self,
        jvm_options: list[str] | None = None,
        code_search_path: list[str] | None = None,
        runtime_env: dict[str, Any] | None = None,
        _client_job: bool = False,
        metadata: dict[str, str] | None = None,
        ray_namespace: str | None = None,
        default_actor_lifetime: str = "non_detached",
        _disable_job_level_lineage_reconstruction: bool = False,
        _py_driver_sys_path: list[str] | None = None,
    ) -> None:
        if not isinstance(code_search_path or [], (list, tuple)):
            raise TypeError(
                f"JobConfig(code_search_path=) must be a list of paths, not {code_search_path!r}"
            )
        self.jvm_options = jvm_options or []
        self.code_search_path = list(code_search_path or [])
        self.metadata = metadata or {}
        self.ray_namespace = ray_namespace
        self.py_logging_config: LoggingConfig | None = None
        self._client_job = _client_job
        self._py_driver_sys_path = _py_driver_sys_path or []
        self.set_runtime_env(runtime_env)
        self.set_default_actor_lifetime(default_actor_lifetime)

    def set_metadata(self, key: str, value: str) -> None:
        self.metadata[key] = value

    def set_runtime_env(self, runtime_env: Any, validate: bool = False) -> None:
        """`init` checks it, whatever `validate` says."""
        self.runtime_env = runtime_env if runtime_env is not None else {}

    def set_py_logging_config(self, logging_config: LoggingConfig | None = None) -> None:
        if logging_config is not None and not isinstance(logging_config, LoggingConfig):
            raise TypeError(f"logging_config must be a LoggingConfig, not {logging_config!r}")
        self.py_logging_config = logging_config

    def ensure_logging_config(self, logging_config: LoggingConfig | None = None) -> None:
        """Sets it, unless it is set."""
        if self.py_logging_config is None:
            self.set_py_logging_config(logging_config)

    def set_ray_namespace(self, ray_namespace: str) -> None:
        self.ray_namespace = ray_namespace

    def set_default_actor_lifetime(self, default_actor_lifetime: str) -> None:
        if default_actor_lifetime not in _LIFETIMES:
            raise ValueError(
                "JobConfig(default_actor_lifetime=) must be 'detached' or 'non_detached', not "
                f"{default_actor_lifetime!r}"
            )
        self.default_actor_lifetime = default_actor_lifetime

    @classmethod
    def from_json(cls, job_config_json: dict[str, Any]) -> JobConfig:
        """Made of a dictionary such as the environment variable RAY_JOB_CONFIG_JSON_ENV_VAR has."""
        config = cls(
            jvm_options=job_config_json.get("jvm_options"),
            code_search_path=job_config_json.get("code_search_path"),
            runtime_env=job_config_json.get("runtime_env"),
            metadata=job_config_json.get("metadata"),
            ray_namespace=job_config_json.get("ray_namespace"),
        )
        lifetime = job_config_json.get("default_actor_lifetime")
        if lifetime is not None:
            config.set_default_actor_lifetime(lifetime)
        logging_config = job_config_json.get("py_logging_config")
        if logging_config is not None:
            config.set_py_logging_config(LoggingConfig.from_dict(logging_config))
        return config


def settings_of(
    job_config: JobConfig | None, logging_config: LoggingConfig | None, tracing: str | None
) -> str:
    """What workers are told, as JSON; empty: nothing."""
    settings: dict[str, Any] = {}
    if tracing is not None:
        settings["tracing"] = tracing
    if job_config is not None:
        logging_config = job_config.py_logging_config or logging_config
        if job_config.default_actor_lifetime != "non_detached":
            settings["actor_lifetime"] = job_config.default_actor_lifetime
    if logging_config is not None:
        settings["logging"] = logging_config.to_dict()
    return json.dumps(settings) if settings else ""
