"""The arguments of `init()`: Ray's names, each checked, and what the engine is started with."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any, NamedTuple

from . import _devices, _machine, _native, _options, _settings, _spilling, _strategy

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from ._address import StartedNode
    from ._logging_config import LoggingConfig
    from .job_config import JobConfig
    from .runtime_env import RuntimeEnv

LOCAL_IP = "127.0.0.1"
LEAST_OBJECT_STORE = 75 * 1024 * 1024
# More waiting workers than this at the start cost more than they save; others start when needed.
_MOST_PRESTARTED = 64
_INFO = 20
_LONGEST_NAMESPACE = 1000
_LEVELS = {"critical": 50, "error": 40, "warning": 30, "warn": 30, "info": 20, "debug": 10}

# Accepted for programs written for Ray; here nothing depends on them.
_NO_EFFECT = frozenset(
    "dashboard_agent_listen_port configure_logging logging_format redis_max_memory "
    "_driver_object_store_memory _memory _redis_password _redis_username _node_ip_address "
    "_metrics_export_port _node_name _enable_object_reconstruction huge_pages plasma_directory "
    "driver_object_store_memory redis_address redis_password proxy_server_url".split()
)
# Accepted too, but somebody who gives them expects something: said aloud.
_NOT_YET = frozenset(
    "enable_resource_isolation cgroup_path system_reserved_cpu "
    "system_reserved_memory storage".split()
)
_MEANINGFUL = frozenset(
    "num_cpus num_gpus resources object_store_memory ignore_reinit_error local_mode logging_level "
    "include_dashboard include_webui dashboard_host dashboard_port log_to_driver namespace "
    "runtime_env _temp_dir temp_dir object_spilling_directory _system_config job_config "
    "logging_config _tracing_startup_hook max_pending_tasks max_pending_tasks_policy "
    "_enforce labels".split()
)


# What a cluster that is there already has decided, and how the refusal calls it.
_OF_THE_CLUSTER = {
    "num_cpus": "num_cpus and num_gpus",
    "num_gpus": "num_cpus and num_gpus",
    "resources": "resources",
    "labels": "labels",
    "object_store_memory": "object_store_memory",
    "object_spilling_directory": "object_spilling_directory",
    "_system_config": "_system_config",
    "_enforce": "_enforce",
}


class Arguments(NamedTuple):
    node: StartedNode | None  # to connect to; None: a session is to be started
    resources: dict[str, float]
    object_store_memory: int
    prestart_workers: int
    memory_usage_threshold: float
    namespace: str
    log_to_driver: bool
    announce: bool
    ignore_reinit_error: bool
    temp_dir: str | None
    spill_to: list[str]
    store_patience_ms: int
    tell_spilling: bool
    dashboard: tuple[str, int | None, bool, str] | None  # host, port, required, Python's version
    runtime_env: RuntimeEnv | None
    sys_path: list[str]  # where workers look for modules, beside the driver's places
    settings: str  # for the workers' Python, as JSON
    logging_config: LoggingConfig | None
    tracing: str | None  # "module:function", which sets it up
    local_mode: bool
    max_pending_tasks: int  # 0: any number
    pending_raises: bool  # what would exceed that raises, and does not wait
    enforce: bool
    labels: dict[str, str]


def check(address: str | None, options: dict[str, Any]) -> Arguments:
    """Refuses what is wrong, by the argument's name, before anything is started."""
    if address is not None and not isinstance(address, str):
        raise TypeError(f"init(address=) must be a string, not {address!r}")
    known = _MEANINGFUL | _NO_EFFECT | _NOT_YET
    unknown = sorted(options.keys() - known)
    if unknown:
        # First what programs mean today, of which there is little else that looks like it.
        hint = _options.did_you_mean(unknown[0], {"address", *_MEANINGFUL})
        hint = hint or _options.did_you_mean(unknown[0], known)
        raise RuntimeError(f"Unknown keyword argument(s) of init(): {', '.join(unknown)}.{hint}")
    job_config, logging_config = _job_config(options)
    tracing = options.get("_tracing_startup_hook")
    if tracing is not None:
        from . import _tracing

        _tracing.find_hook(tracing)
    node = _node(address)
    for name, called in _OF_THE_CLUSTER.items():
        if node is not None and options.get(name) is not None:
            raise ValueError(
                f"When connecting to an existing cluster, {called} must not be provided. init() "
                f'would connect to the cluster at {node.address}; init(address="local") starts '
                "a session of its own."
            )
    for name in sorted(options.keys() & _NOT_YET):
        if options[name]:
            warnings.warn(f"init({name}=) has no effect yet", stacklevel=3)
    num_cpus = _count("num_cpus", options.get("num_cpus"))
    cpus = _machine.usable_cpus() if num_cpus is None else num_cpus
    num_gpus = _count("num_gpus", options.get("num_gpus"))
    gpus = _devices.count() if num_gpus is None else num_gpus
    memory = _machine.total_memory()
    store = _object_store(options.get("object_store_memory"), memory)
    resources = {
        **_custom(options.get("resources")),
        "CPU": float(cpus),
        "GPU": float(gpus),
        "memory": float(int(memory * 0.7)),
        "object_store_memory": float(store),
        f"node:{LOCAL_IP}": 1.0,
        "node:__internal_head__": 1.0,
    }
    temp_dir = options.get("_temp_dir", options.get("temp_dir"))
    if temp_dir is not None and not isinstance(temp_dir, str):
        raise TypeError(f"init(_temp_dir=) must be a string, not {temp_dir!r}")
    log_to_driver = options.get("log_to_driver")
    return Arguments(
        node=node,
        resources={name: amount for name, amount in resources.items() if amount},
        object_store_memory=store,
        prestart_workers=min(int(cpus), _MOST_PRESTARTED),
        memory_usage_threshold=_memory_usage_threshold(),
        namespace=_namespace(options.get("namespace") or (job_config and job_config.ray_namespace)),
        log_to_driver=True if log_to_driver is None else bool(log_to_driver),
        announce=_level(options.get("logging_level")) <= _INFO,
        ignore_reinit_error=bool(options.get("ignore_reinit_error", False)),
        temp_dir=temp_dir,
        spill_to=_spilling.targets(options),
        store_patience_ms=_spilling.patience_ms(),
        tell_spilling=_spilling.is_told(),
        dashboard=_dashboard(options),
        runtime_env=_runtime_env(
            options.get("runtime_env") or (job_config and job_config.runtime_env)
        ),
        sys_path=_search_path(job_config),
        settings=_job_settings(job_config, logging_config, tracing),
        logging_config=logging_config,
        tracing=tracing,
        local_mode=bool(options.get("local_mode")),
        max_pending_tasks=_max_pending_tasks(options.get("max_pending_tasks")),
        pending_raises=_pending_raises(options.get("max_pending_tasks_policy")),
        enforce=_enforce(options.get("_enforce")),
        labels=_labels(options.get("labels")),
    )


def _labels(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"init(labels=) must be a dict of strings, not {value!r}")
    for key, text in value.items():
        _strategy.check_key("init(labels=)", key)
        if not isinstance(text, str):
            raise TypeError(f"init(labels=): the value of {key!r} must be a string, not {text!r}")
        _strategy.check_value("init(labels=)", key, text)
        if key == "ray.io/node-id":
            raise ValueError(f"init(labels=): {key!r} is reserved: every node gets it by itself")
    return dict(value)


def _max_pending_tasks(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"init(max_pending_tasks=) must be a number of tasks, not {value!r}")
    if value < 1:
        raise ValueError(f"init(max_pending_tasks=) must be at least 1, not {value!r}")
    return value


def _pending_raises(policy: object) -> bool:
    if policy not in (None, "block", "raise"):
        raise ValueError(
            f'init(max_pending_tasks_policy=) must be "block" or "raise", not {policy!r}'
        )
    return policy == "raise"


def _enforce(value: Any) -> bool:
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"init(_enforce=) must be True or False, not {value!r}")
    return bool(value)


def _memory_usage_threshold() -> float:
    # The node service and the workers read these for themselves; what is wrong is said here.
    _settings.number("RAY_memory_monitor_refresh_ms", 0, 1e9)
    _settings.number("RAY_task_oom_retries", -1, 1e9)
    _settings.number("RAY_task_oom_retry_delay_base_ms", 0, 1e9)
    return _settings.number("RAY_memory_usage_threshold", 0, 1)


def _job_config(options: dict[str, Any]) -> tuple[JobConfig | None, LoggingConfig | None]:
    job, logging = options.get("job_config"), options.get("logging_config")
    if job is None and logging is None:
        return None, None
    from ._logging_config import LoggingConfig
    from .job_config import JobConfig

    if isinstance(job, dict):
        job = JobConfig.from_json(job)
    if job is not None and not isinstance(job, JobConfig):
        raise TypeError(f"init(job_config=) must be a JobConfig, not {job!r}")
    if logging is not None and not isinstance(logging, LoggingConfig):
        raise TypeError(f"init(logging_config=) must be a LoggingConfig, not {logging!r}")
    return job, (job and job.py_logging_config) or logging


def _job_settings(job: JobConfig | None, logging: LoggingConfig | None, tracing: str | None) -> str:
    if job is None and logging is None and tracing is None:
        return ""
    from .job_config import settings_of

    return settings_of(job, logging, tracing)


def _search_path(job: JobConfig | None) -> list[str]:
    if job is None:
        return []
    return [os.path.abspath(place) for place in (*job.code_search_path, *job._py_driver_sys_path)]


def _runtime_env(value: Any) -> RuntimeEnv | None:
    if not value:
        return None
    from . import _environment

    return _environment.check("init(runtime_env=)", value)


def _node(address: str | None) -> StartedNode | None:
    """The node of this machine that the address means, or the environment, or that is there."""
    if not address and not _settings.text("OXIRAY_ADDRESS"):
        # The usual case, without another import.
        if not _native.started_nodes():
            return None
    elif address == "local":
        return None
    from ._address import resolve

    return resolve(address)


def _count(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"init({name}=) must be a number, not {value!r}")
    if not 0 <= value < float("inf"):
        raise ValueError(f"init({name}=) must be nonnegative, not {value!r}")
    if value != int(value):
        raise ValueError(f"init({name}=) must be a whole number, not {value!r}")
    return value


def _custom(resources: Any) -> dict[str, float]:
    if resources is None:
        return {}
    if not isinstance(resources, dict):
        raise TypeError(f"init(resources=) must be a dict of names to amounts, not {resources!r}")
    for name, amount in resources.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"init(resources=): names must be strings, not {name!r}")
        if name in ("CPU", "GPU"):
            raise ValueError(f"init(resources=): use num_{name.lower()}s= instead of {name!r}")
        if name in ("memory", "object_store_memory") or name.startswith("node:"):
            raise ValueError(f"init(resources=): {name!r} is set by the engine")
        if isinstance(amount, bool) or not isinstance(amount, (int, float)):
            raise TypeError(f"init(resources=): {name!r} must be a number, not {amount!r}")
        if not 0 <= amount < float("inf"):
            raise ValueError(f"init(resources=): {name!r} must be nonnegative, not {amount!r}")
    return {name: float(amount) for name, amount in resources.items()}


def _object_store(value: Any, memory: int) -> int:
    if value is None:
        return max(LEAST_OBJECT_STORE, int(memory * 0.3))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value % 1:
        raise TypeError(f"init(object_store_memory=) must be a number of bytes, not {value!r}")
    if value < LEAST_OBJECT_STORE:
        raise ValueError(
            f"init(object_store_memory={int(value)}): the least is {LEAST_OBJECT_STORE} "
            f"({_native.show_bytes(LEAST_OBJECT_STORE)})"
        )
    if value > memory:
        raise ValueError(
            f"init(object_store_memory={int(value)}) is {_native.show_bytes(int(value))}, more "
            f"than this machine's memory, {_native.show_bytes(memory)}"
        )
    return int(value)


def _dashboard(options: dict[str, Any]) -> tuple[str, int | None, bool, str] | None:
    """Where the dashboard is to be; None: there is to be none."""
    include = options.get("include_dashboard", options.get("include_webui"))
    host, port = options.get("dashboard_host"), options.get("dashboard_port")
    if include is not None and not isinstance(include, bool):
        raise TypeError(f"init(include_dashboard=) must be None, True or False, not {include!r}")
    if host is not None and not isinstance(host, str):
        raise TypeError(f"init(dashboard_host=) must be a string, not {host!r}")
    if port is not None and (isinstance(port, bool) or not isinstance(port, int)):
        raise TypeError(f"init(dashboard_port=) must be a number, not {port!r}")
    if port is not None and not 0 <= port < 65536:
        raise ValueError(f"init(dashboard_port=) must be from 0 to 65535, not {port!r}")
    if include is False:
        return None
    required = bool(include) or host is not None or port is not None
    return host or "", port, required, sys.version.split()[0]


def _namespace(value: Any) -> str:
    if value is None:
        return os.urandom(16).hex()  # a job's own, as in Ray
    if not isinstance(value, str):
        raise TypeError(f"init(namespace=) must be None or a string, not {value!r}")
    if not value:
        raise ValueError("init(namespace=) must not be empty")
    if len(value.encode(errors="replace")) > _LONGEST_NAMESPACE:
        raise ValueError(f"init(namespace=) can have {_LONGEST_NAMESPACE} bytes: {value[:40]!r}...")
    return value


def _level(value: Any) -> int:
    if value is None:
        return _INFO
    if isinstance(value, str):
        level = _LEVELS.get(value.lower())
        if level is None:
            raise ValueError(f"init(logging_level=): unknown level {value!r}")
        return level
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"init(logging_level=) must be a level of logging, not {value!r}")
    return value
