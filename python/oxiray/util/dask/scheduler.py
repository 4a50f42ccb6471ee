"""Dask's schedulers on this engine: each task of a graph is a task, its inputs are references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._native import ObjectRef, get
from ..._remote import remote
from .callbacks import Hooks, local_ray_callbacks, unpack_ray_callbacks

_OLDEST = "2024.12"


def enable_dask_on_ray(
    shuffle: str | None = "tasks", use_shuffle_optimization: bool | None = True
) -> Any:
    """Makes `ray_dask_get` the scheduler of Dask; used as a context manager, within it."""
    import dask

    options: dict[str, Any] = {"scheduler": ray_dask_get}
    if shuffle is not None:
        options["dataframe.shuffle.method"] = shuffle
    return dask.config.set(**{name.replace(".", "__"): value for name, value in options.items()})


def disable_dask_on_ray() -> Any:
    """Lets Dask choose its scheduler again."""
    import dask

    return dask.config.set(scheduler=None)


def ray_dask_get(dsk: Mapping[Any, Any], keys: Any, **kwargs: Any) -> Any:
    """Runs a graph; what it computes for `keys`, nested as they are.

    Args:
        ray_callbacks: `RayDaskCallback`s for this graph.
        ray_persist: whether references are returned instead of values.
        ray_remote_args: options of the tasks, also by Dask's annotations of that name.
    """
    if hasattr(dsk, "__dask_graph__"):  # an expression, of which newer versions make graphs late
        dsk = dsk.__dask_graph__()
    with local_ray_callbacks(kwargs.pop("ray_callbacks", None)) as callbacks:
        hooks = unpack_ray_callbacks(callbacks)
        options = dict(kwargs.pop("ray_remote_args", None) or {})
        known = _submit_all(_nodes(dsk), dsk, hooks, options)
        refs = [value for value in known.values() if isinstance(value, ObjectRef)]
        for hook in hooks["ray_postsubmit_all"]:
            hook(refs, dsk)
        if kwargs.pop("ray_persist", False):
            return _nested(keys, known)
        values = dict(zip(refs, get(refs), strict=True)) if hooks["ray_finish"] else {}
        result = _nested(keys, _Values(known, values))
        for hook in hooks["ray_finish"]:
            hook(result)
        return result


def ray_dask_persist(*args: Any, **kwargs: Any) -> Any:
    """Dask's `persist`, with what is computed left in the object store."""
    import dask

    return dask.persist(*args, scheduler=ray_dask_get, ray_persist=True, **kwargs)


def ray_dask_get_sync(dsk: Mapping[Any, Any], keys: Any, **kwargs: Any) -> Any:
    """Runs a graph in this process, one task after the other: for debugging."""
    from dask.local import get_sync

    return get_sync(dsk, keys, **kwargs)


class _Values:
    """What is known by key, as values."""

    def __init__(self, known: dict[Any, Any], values: dict[ObjectRef[Any], Any]) -> None:
        self._known, self._values = known, values

    def __getitem__(self, key: Any) -> Any:
        value = self._known[key]
        if not isinstance(value, ObjectRef):
            return value
        if value not in self._values:
            self._values[value] = get(value)
        return self._values[value]


def _nodes(dsk: Mapping[Any, Any]) -> dict[Any, Any]:
    """The graph's tasks, by key, each after those that it needs."""
    try:
        from dask._task_spec import convert_legacy_graph
        from dask.core import toposort
    except ImportError as error:
        raise ImportError(f"ray_dask_get needs dask of version {_OLDEST} or later") from error
    nodes = convert_legacy_graph(dict(dsk))
    order = toposort(nodes, dependencies={key: node.dependencies for key, node in nodes.items()})
    return {key: nodes[key] for key in order}


def _submit_all(
    nodes: dict[Any, Any], dsk: Mapping[Any, Any], hooks: Hooks, options: dict[str, Any]
) -> dict[Any, Any]:
    """References of what tasks will compute, and values that the graph has itself, by key."""
    from dask._task_spec import Alias, DataNode

    annotations = _annotations(dsk)
    known: dict[Any, Any] = {}
    for key, node in nodes.items():
        if isinstance(node, DataNode):
            known[key] = node()
        elif isinstance(node, Alias):
            known[key] = known[node.target]
        else:
            known[key] = _submit(key, node, known, hooks, {**options, **annotations.get(key, {})})
    return known


def _submit(
    key: Any, node: Any, known: dict[Any, Any], hooks: Hooks, options: dict[str, Any]
) -> Any:
    needed = sorted(node.dependencies, key=str)
    inputs = [known[one] for one in needed]
    for hook in hooks["ray_presubmit"]:
        value = hook(node, key, inputs)
        if value is not None:
            return value
    task = _run.options(**{"name": f"dask:{_short(key)}", **options})
    around = hooks["ray_pretask"], hooks["ray_posttask"]
    ref = task.remote(node, key, needed, around, *inputs)
    for hook in hooks["ray_postsubmit"]:
        hook(node, key, inputs, ref)
    return ref


@remote
def _run(node: Any, key: Any, needed: list[Any], around: tuple[Any, Any], *inputs: Any) -> Any:
    before, after = around
    states = [hook(key, inputs) for hook in before]
    result = node(dict(zip(needed, inputs, strict=True)))
    for at, hook in enumerate(after):
        hook(key, result, states[at] if at < len(states) else None)
    return result


def _annotations(dsk: Mapping[Any, Any]) -> dict[Any, dict[str, Any]]:
    """Options that a graph's layers name for their tasks."""
    found: dict[Any, dict[str, Any]] = {}
    for layer in getattr(dsk, "layers", {}).values():
        options = (getattr(layer, "annotations", None) or {}).get("ray_remote_args")
        if options:
            found.update((key, options) for key in layer)
    return found


def _nested(keys: Any, values: Any) -> Any:
    if isinstance(keys, list):
        return [_nested(key, values) for key in keys]
    return values[keys]


def _short(key: Any) -> str:
    text = str(key[0] if isinstance(key, tuple) and key else key)
    return text[:100] or "task"
