"""`RuntimeEnv` and `RuntimeEnvConfig`: dicts whose fields are checked when they are set."""

from __future__ import annotations

import hashlib
import json
from copy import deepcopy
from typing import Any, ClassVar

from .. import _environment_fields as fields


class RuntimeEnvConfig(dict[str, Any]):
    """How an environment is made; not what is in it.

    Args:
        setup_timeout_seconds: how long its making may take; -1: for ever.
        eager_install: accepted for programs written for Ray; it is made when something first needs
            it.
        log_files: accepted for programs written for Ray.
    """

    known_fields: ClassVar[set[str]] = {"setup_timeout_seconds", "eager_install", "log_files"}

    def __init__(
        self,
        setup_timeout_seconds: int = fields.SETUP_TIMEOUT_S,
        eager_install: bool = True,
        log_files: list[str] | None = None,
    ) -> None:
        checked = fields.config(
            {
                "setup_timeout_seconds": setup_timeout_seconds,
                "eager_install": eager_install,
                "log_files": log_files,
            }
        )
        super().__init__(checked)

    @staticmethod
    def parse_and_validate_runtime_env_config(
        config: dict[str, Any] | RuntimeEnvConfig,
    ) -> RuntimeEnvConfig:
        if isinstance(config, RuntimeEnvConfig):
            return config
        return RuntimeEnvConfig(**fields.config(config))

    @classmethod
    def default_config(cls) -> RuntimeEnvConfig:
        return cls()

    def to_dict(self) -> dict[str, Any]:
        return dict(deepcopy(self))


class RuntimeEnv(dict[str, Any]):
    """The environment of a job, task or actor; a plain dict with the same fields does as well.

    Args:
        working_dir: a directory, a zip file or an address of one: the workers' current directory.
        py_modules: directories, modules, wheels or addresses of such, to be imported from.
        excludes: what of those directories is left out, as lines of a .gitignore.
        pip: packages to install: a list, the path of a requirements file, or a dict of `packages`,
            `pip_check`, `pip_version` and `pip_install_options`.
        uv: likewise, installed by uv: a list, a path, or a dict of `packages`, `uv_check`,
            `uv_version` and `uv_pip_install_options`.
        conda: the name of a conda environment, the path of its YAML file, or a dict of it.
        env_vars: environment variables; `${NAME}` in a value is what the variable was before.
        py_executable: the Python of the workers, perhaps with arguments.
        worker_process_setup_hook: a function, or its name, that every worker calls when it starts.
        image_uri, container: the image of a container that workers run in.
        config: a `RuntimeEnvConfig`, or a dict of its fields.
    """

    known_fields: ClassVar[set[str]] = set(fields.CHECKS)
    extensions_fields: ClassVar[set[str]] = set(fields.EXTENSIONS)

    def __init__(
        self,
        *,
        py_modules: list[str] | None = None,
        py_executable: str | None = None,
        working_dir: str | None = None,
        pip: Any = None,
        conda: Any = None,
        container: dict[str, Any] | None = None,
        env_vars: dict[str, str] | None = None,
        worker_process_setup_hook: Any = None,
        nsight: Any = None,
        rocprof_sys: Any = None,
        config: dict[str, Any] | RuntimeEnvConfig | None = None,
        _validate: bool = True,
        image_uri: str | None = None,
        uv: Any = None,
        **others: Any,
    ) -> None:
        super().__init__()
        given = {
            "py_modules": py_modules,
            "py_executable": py_executable,
            "working_dir": working_dir,
            "pip": pip,
            "uv": uv,
            "conda": conda,
            "_nsight": nsight,
            "_rocprof_sys": rocprof_sys,
            "container": container,
            "env_vars": env_vars,
            "config": config,
            "worker_process_setup_hook": worker_process_setup_hook,
            "image_uri": image_uri,
            **others,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if not _validate:
            self.update(given)
            return
        fields.refuse_together(given)
        for name, value in given.items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        checked = fields.check(name, value)
        if checked is not None:
            if name == "config":
                checked = RuntimeEnvConfig(**checked)
            super().__setitem__(name, checked)

    def set(self, name: str, value: Any) -> None:
        self[name] = value

    def get(self, name: str, default: Any = None, data_class: Any = None) -> Any:
        value = super().get(name, default)
        return data_class(**value) if data_class and isinstance(value, dict) else value

    @classmethod
    def deserialize(cls, serialized_runtime_env: str) -> RuntimeEnv:
        return cls(_validate=False, **json.loads(serialized_runtime_env))

    def serialize(self) -> str:
        return json.dumps(type(self)(**self), sort_keys=True)

    def to_dict(self) -> dict[str, Any]:
        # A module is no copy of itself, and nobody changes it here.
        plain = {
            name: list(value) if name == "py_modules" else deepcopy(value)
            for name, value in self.items()
        }
        if plain.get("config"):
            plain["config"] = dict(plain["config"])
        return plain

    def has_working_dir(self) -> bool:
        return self.get("working_dir") is not None

    def working_dir_uri(self) -> str | None:
        value: str | None = self.get("working_dir")
        return value

    def working_dir(self) -> str:
        value: str = self.get("working_dir", "")
        return value

    def py_modules(self) -> list[str]:
        return list(self.get("py_modules", ()))

    py_modules_uris = py_modules

    def py_executable(self) -> str | None:
        value: str | None = self.get("py_executable")
        return value

    def env_vars(self) -> dict[str, str]:
        value: dict[str, str] = self.get("env_vars", {})
        return value

    def has_conda(self) -> bool:
        return bool(self.get("conda"))

    def conda_env_name(self) -> str | None:
        return self["conda"] if isinstance(self.get("conda"), str) else None

    def conda_config(self) -> str | None:
        conda = self.get("conda")
        return json.dumps(conda, sort_keys=True) if isinstance(conda, dict) else None

    def has_pip(self) -> bool:
        return bool(self.get("pip"))

    def has_uv(self) -> bool:
        return bool(self.get("uv"))

    def pip_config(self) -> dict[str, Any]:
        value: dict[str, Any] = self.get("pip", {})
        return value

    def uv_config(self) -> dict[str, Any]:
        value: dict[str, Any] = self.get("uv", {})
        return value

    def conda_uri(self) -> str | None:
        return self._uri("conda")

    def pip_uri(self) -> str | None:
        return self._uri("pip")

    def uv_uri(self) -> str | None:
        return self._uri("uv")

    def _uri(self, name: str) -> str | None:
        """A name that environments share whose packages are the same; the engine has its own."""
        wanted = self.get(name)
        if not wanted:
            return None
        text = json.dumps(wanted, sort_keys=True)
        return f"{name}://{hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()}"

    def virtualenv_name(self) -> str | None:
        return self["pip"] if isinstance(self.get("pip"), str) else None

    def image_uri(self) -> str | None:
        value: str | None = self.get("image_uri")
        return value

    def has_py_container(self) -> bool:
        return bool(self.get("container"))

    def py_container_image(self) -> str | None:
        return self["container"].get("image", "") if self.has_py_container() else None

    def py_container_worker_path(self) -> str | None:
        return self["container"].get("worker_path", "") if self.has_py_container() else None

    def py_container_run_options(self) -> list[str] | None:
        return self["container"].get("run_options", []) if self.has_py_container() else None

    def nsight(self) -> Any:
        return self.get("_nsight")

    def rocprof_sys(self) -> Any:
        return self.get("_rocprof_sys")

    def get_extension(self, key: str) -> Any:
        if key not in self.extensions_fields:
            raise ValueError(f"{key!r} is not one of {sorted(self.extensions_fields)}")
        return self.get(key)

    def java_jars(self) -> list[str]:
        return list(self.get("java_jars") or ())

    def plugin_uris(self) -> list[str]:
        """None, as in Ray."""
        return []

    def plugins(self) -> list[tuple[str, Any]]:
        return []
