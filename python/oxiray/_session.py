"""Sessions: `init`, `shutdown`, and the one session a process may have."""

from __future__ import annotations

import _thread  # not `threading`, which costs more to import
import os
import sys
import time

from . import _native, _settings

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from typing import Any

    from ._context import RayContext
    from ._init_arguments import Arguments
    from ._log_printer import LogPrinter

# Counts the sessions of this process; definitions are shipped once for each.
number = 0

# Of the command that a job is known by.
_LONGEST_ENTRYPOINT = 1000
_LONGEST_FAILURE = 1000

# How long `shutdown` waits for the last lines of workers to be printed.
_LAST_LINES_S = 2.0

# Modules that are worth importing before workers fork, if the driver uses them.
_WORTH_PRELOADING = ("numpy", "numpy.random")

_context: RayContext | None = None
_printer: LogPrinter | None = None
_driver_pid = 0
_directory = ""
# Whether the directory is a node's that was there before this session, and stays.
_is_guest = False
# The process whose session a forked child lost, until it begins its own; 0: there was none.
_forked_from = 0
# This process loads modules for workers to be forked with (`_warm`). What asks for a session is
# left to them: they have one.
is_template = False
# Threads may all use the API first; a signal handler may come in between.
_lock = _thread.RLock()


def init(address: str | None = None, **options: Any) -> RayContext:
    """Connects to a cluster that this machine is part of, or starts a session of its own.

    Args:
        address: "auto" or "HOST:PORT" of its head connects to a cluster, of which `oxiray start`
            has made this machine a part; "local" starts a session on this machine alone: the node
            service, its workers, and this driver. Unless given, RAY_ADDRESS counts; unless that is
            set, the cluster this machine is part of; unless there is one, "local".
        num_cpus: CPUs to schedule by; the usable cores unless given, and it may exceed them.
        num_gpus: GPUs to schedule by; those found unless given.
        resources: names and amounts of custom resources.
        object_store_memory: bytes of shared memory for objects; 30 % of memory unless given.
        ignore_reinit_error: return the running session instead of raising.
        logging_level: a level of `logging`; above INFO the line about the start is not printed.
        log_to_driver: whether what workers print is printed here; True unless given.
        namespace: the namespace of named actors.
        include_dashboard (or include_webui): whether a session that is started has a dashboard;
            True unless given. It is a process only while somebody looks.
        dashboard_host: where it is served; only on this machine, 127.0.0.1, unless given.
        dashboard_port: its port, 0 being any; 8265 or the next free one unless given.
        runtime_env: the environment of the workers, a dict or a `RuntimeEnv`.
        job_config: a `ray.job_config.JobConfig`.
        logging_config: a `ray.LoggingConfig`, for the loggers of this process and of its workers.
        local_mode: run tasks and actors in this process, one after the other, to debug them.
        max_pending_tasks: tasks and calls that this driver may have under way; any number unless
            given. What would exceed it waits in `.remote()`, or with
            max_pending_tasks_policy="raise" raises PendingCallsLimitExceeded.
        _enforce: let the kernel see that tasks and actors take no more than the `memory` and
            `num_cpus` they asked for; it needs control groups that this user may make.
        labels: of the node that is started, a dict of strings, for `label_selector=`.
        configure_logging, logging_format, _temp_dir, ...: Ray's;
            what has no meaning here yet is accepted only where it changes nothing.
    """
    from . import _init_arguments

    arguments = _init_arguments.check(address, options)
    with _lock:
        return _init(arguments)


def _init(arguments: Arguments) -> RayContext:
    global number, _context, _printer, _driver_pid, _directory, _is_guest, _forked_from
    _be_no_template()
    if _native.is_running():
        if arguments.ignore_reinit_error:
            return _context or _make_context()
        raise RuntimeError(
            "Maybe you called init() twice by accident? Pass ignore_reinit_error=True to go on "
            "with the running session, or call shutdown() before init()."
        )
    _end()  # what an interrupted shutdown() left
    node = arguments.node
    directory = node.session_dir if node else _native.new_session(arguments.temp_dir)
    _register()
    # From here on `shutdown` can end whatever has been started.
    _driver_pid, _is_guest, _directory = os.getpid(), node is not None, directory
    try:
        if node is None:
            _native.make_session(directory, arguments.temp_dir is not None)
        _import_meanwhile()
        if node is None:
            _start(arguments, directory)
            _native.hand_over_session()
        else:
            _connect(arguments, directory)
        number, _forked_from = number + 1, 0
        if arguments.max_pending_tasks:
            _native.limit_pending(arguments.max_pending_tasks, arguments.pending_raises)
        if arguments.runtime_env or _settings.text("OXIRAY_JOB_RUNTIME_ENV"):
            from . import _environment

            _environment.begin(arguments.runtime_env)
        from ._log_printer import LogPrinter

        _printer = LogPrinter(arguments.log_to_driver)
        _context = _make_context()
        _switch_local_mode(arguments.local_mode)
        if arguments.logging_config is not None:
            arguments.logging_config._apply()
        if arguments.tracing is not None:
            from . import _tracing

            _tracing.begin(arguments.tracing)
        if arguments.announce:
            _announce(arguments, _context)
        return _context
    except BaseException:  # Ctrl-C too, which may come just after the start
        if _directory == directory:  # else a signal handler has ended this session, or begun one
            _end()
        raise


# Whether tasks and actors run in this process (`_local_mode`).
is_local = False
# Whether calls that this process submits have spans (`_tracing`).
is_traced = False


def _switch_local_mode(on: bool) -> None:
    global is_local
    is_local = on
    if on:
        import warnings

        from ._local_mode import WARNING, forget

        forget()
        warnings.warn(WARNING, stacklevel=4)


def _start(arguments: Arguments, directory: str) -> None:
    _native.start(
        program=program(),
        resources=arguments.resources,
        object_store_memory=arguments.object_store_memory,
        python=sys.executable,
        sys_path=_sys_path(arguments),
        preload=_worth_preloading(),
        session_dir=directory,
        log_to_driver=arguments.log_to_driver,
        prestart_workers=arguments.prestart_workers,
        memory_usage_threshold=arguments.memory_usage_threshold,
        namespace=arguments.namespace,
        spill_to=arguments.spill_to,
        store_patience_ms=arguments.store_patience_ms,
        tell_spilling=arguments.tell_spilling,
        entrypoint=_entrypoint(),
        settings=arguments.settings,
        dashboard=arguments.dashboard,
        enforce=arguments.enforce,
        labels=arguments.labels,
    )


def _worth_preloading() -> list[str]:
    if not _settings.is_on("OXIRAY_PRELOAD"):
        return []
    return [name for name in _WORTH_PRELOADING if name in sys.modules]


def _connect(arguments: Arguments, directory: str) -> None:
    _native.connect(
        session_dir=directory,
        sys_path=_sys_path(arguments),
        namespace=arguments.namespace,
        log_to_driver=arguments.log_to_driver,
        entrypoint=_entrypoint(),
        python=f"{sys.version_info[0]}.{sys.version_info[1]}",
        settings=arguments.settings,
    )


def _entrypoint() -> str:
    """What was run, in words."""
    return " ".join(sys.orig_argv)[:_LONGEST_ENTRYPOINT].encode(errors="replace").decode()


def auto_init() -> None:
    """Called by the native module when the API is used without a session."""
    with _lock:
        if _native.is_running():
            return
        if _forked_from:
            from .exceptions import RaySystemError

            raise RaySystemError(
                f"This process was forked from process {_forked_from}, and has no part in its "
                "session: the API can be used there, not here. Let a task do what this process "
                "does, or call init() here first, which gives it a session of its own."
            )
        init()


def _be_no_template() -> None:
    if is_template:
        raise RuntimeError("there is no session here: this process only loads modules")


def is_initialized() -> bool:
    """Whether a session is running."""
    _be_no_template()
    return _native.is_running()


def shutdown(*, wait_for_processes: bool = False, _exiting_interpreter: bool = False) -> None:
    """Ends the session and everything it started. Does nothing when there is none. It returns when
    all has ended, whatever `wait_for_processes` says.

    A cluster that was there before goes on: the program only leaves it.
    """
    _shut_down("")


def _at_exit() -> None:
    _shut_down(_what_ended_it())


def _what_ended_it() -> str:
    """The uncaught exception that ends the program, if that is why it ends."""
    error = getattr(sys, "last_value", None)
    # At a prompt, and in a notebook, errors end nothing.
    if error is None or hasattr(sys, "ps1"):
        return ""
    import traceback

    try:
        text = "".join(traceback.format_exception_only(error)).strip()[:_LONGEST_FAILURE]
    except Exception:  # it cannot even say what it is
        text = type(error).__name__
    return text.encode(errors="replace").decode()


def _shut_down(failure: str) -> None:
    with _lock:
        # A worker's session is not its own to end.
        if _driver_pid == os.getpid():
            _end(failure)


def _end(failure: str = "") -> None:
    """Can be interrupted and done again: what each step ends is forgotten last."""
    global _context, _printer, _directory, is_traced
    is_traced = False
    if not _directory:
        return
    metrics = sys.modules.get("oxiray.util.metrics")
    if metrics is not None and _is_guest:
        metrics._registry.write()
    _native.stop(failure)
    _context = None
    if _printer is not None:
        _printer.join(_LAST_LINES_S)
        _printer = None
    if not _is_guest:
        _native.end_session(_directory)
    _directory = ""


def forget_in_children() -> None:
    """Makes forked children of this process forget its session: they may begin their own."""
    os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    global _context, _printer, _driver_pid, _directory, _lock, _forked_from
    if _native.after_fork_in_child():
        _forked_from = os.getppid()
    _context, _printer, _driver_pid, _directory = None, None, 0, ""
    _lock = _thread.RLock()
    futures = sys.modules.get("oxiray._futures")
    if futures is not None:
        futures.forget()


def _import_meanwhile() -> None:
    """Imports what the first call needs while the node service starts."""
    import threading

    def run() -> None:
        from . import _log_printer, _serialization  # noqa: F401

        __import__("cloudpickle")

    threading.Thread(target=run, name="oxiray-imports", daemon=True).start()


def _make_context() -> RayContext:
    from ._context import RayContext
    from ._init_arguments import LOCAL_IP

    view = _native.context()
    dashboard = _native.dashboard_url(view["session_dir"]) or ""
    info = {
        "node_ip_address": view["address"].rpartition(":")[0] or LOCAL_IP,
        "address": view["control"] or "local",
        "session_dir": view["session_dir"],
        "webui_url": dashboard.partition("://")[2],
        "node_id": view["node_id"].hex(),
    }
    if view["control"]:
        info["gcs_address"] = view["control"]
    return RayContext(info, dashboard)


def program() -> str:
    override = _settings.text("OXIRAY_OXIRAYD")
    path = override or os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", "oxirayd")
    if not os.access(path, os.X_OK):
        where = "OXIRAY_OXIRAYD names" if override else "The package lacks"
        raise RuntimeError(
            f"{where} {path}, which is not an executable file; reinstall the package oxiray"
        )
    return path


def _sys_path(arguments: Arguments) -> list[str]:
    """The driver's import path, made independent of the directory a worker happens to be in.

    Modules beside its script come from the working_dir, if there is one, as with Ray.
    """
    own = [os.path.abspath(entry) for entry in sys.path]
    environment: dict[str, Any] = arguments.runtime_env or {}
    if "working_dir" in environment or '"working_dir"' in _settings.text("OXIRAY_JOB_RUNTIME_ENV"):
        beside = {os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0] if sys.argv else ""))}
        own = [entry for entry in own if entry not in beside]
    return list(dict.fromkeys([*arguments.sys_path, *own]))


def _announce(arguments: Arguments, context: RayContext) -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    if arguments.node:
        text = f"Connected to the cluster at {arguments.node.address}."
    else:
        text = f"Started a local instance: {_size(arguments.resources)}."
    if context._dashboard:
        text += f" View the dashboard at {context._dashboard}"
    elif arguments.node and not arguments.node.is_head:
        text += " Its dashboard is on the head, where `oxiray dashboard` prints the address."
    elif arguments.dashboard and not arguments.node:
        text += " It has no dashboard: every port from 8265 on is in use (dashboard_port=)."
    try:
        sys.stderr.write(f"{stamp} INFO oxiray -- {text}\n")
    except Exception:  # no usable stderr is no reason to fail
        pass


def _size(resources: dict[str, float]) -> str:
    parts = [
        f"{resources[name]:g} {name}{'' if resources[name] == 1 else 's'}"
        for name in ("CPU", "GPU")
        if name in resources and (name == "CPU" or resources[name])
    ]
    parts.append(f"{_native.show_bytes(int(resources['object_store_memory']))} for objects")
    return ", ".join(parts)


_registered = False


def _register() -> None:
    global _registered
    if not _registered:
        import atexit

        from . import _uncaught

        atexit.register(_at_exit)
        _uncaught.install()
        forget_in_children()
        _registered = True
