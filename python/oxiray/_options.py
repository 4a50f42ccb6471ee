"""The options of tasks and actors: a table of each option's rule, and what follows from them.

Options of later versions are known here too: their default is accepted, anything else is refused
with a clear error, never ignored.
"""

from __future__ import annotations

from . import _strategy

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    Kind = Literal["task", "actor", "method"]
    Check = Callable[[str, Any], Any]  # returns the value to keep, or raises


def _type_error(name: str, wanted: str, value: object) -> TypeError:
    return TypeError(f"The option {name!r} must be {wanted}, not {value!r}")


def _amount(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _type_error(name, "a number", value)
    if not 0 <= value < float("inf"):  # also refuses nan
        raise ValueError(f"The quantity of resource {name} cannot be negative: {value!r}")
    return value


def _gpus(name: str, value: Any) -> float | None:
    amount = _amount(name, value)
    if amount is not None and amount > 1 and amount != int(amount):
        raise ValueError(f"GPU quantities above 1 must be whole numbers: {name}={value!r}")
    return amount


_USE_INSTEAD = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}


def _resources(name: str, value: Any) -> dict[str, float] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _type_error(name, "a dict of names to amounts", value)
    for key, amount in value.items():
        if not isinstance(key, str) or not key:
            raise TypeError(f"The names in {name!r} must be strings, not {key!r}")
        if key in _USE_INSTEAD:
            raise ValueError(f"Use the option {_USE_INSTEAD[key]}= instead of {key!r} in {name}=")
        if key == "object_store_memory":
            raise ValueError(f"{key!r} cannot be asked for in {name}=")
        if amount is None:
            raise _type_error(f"{name}[{key!r}]", "a number", amount)
        _amount(key, amount)
    return dict(value)


_MOST = 2**31 - 1
_HIGHEST = 100  # priority


def _whole(least: int, meaning: str = "") -> Check:
    def check(name: str, value: Any) -> int | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise _type_error(name, "a whole number", value)
        if value < least:
            raise ValueError(f"The option {name!r} must be at least {least}{meaning}: {value!r}")
        if value > _MOST:
            raise ValueError(f"The option {name!r} must be at most {_MOST}: {value!r}")
        return value

    return check


def _priority(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise _type_error(name, "a whole number", value)
    if not -_HIGHEST <= value <= _HIGHEST:
        raise ValueError(
            f"The option {name!r} must be between -{_HIGHEST} and {_HIGHEST}: {value!r}"
        )
    return value


def _num_returns(name: str, value: Any) -> int | None:
    if value in ("dynamic", "streaming"):
        raise ValueError(f"num_returns={value!r} is not supported yet: generators come later")
    return _whole(0)(name, value)  # type: ignore[no-any-return]


def _retry_exceptions(name: str, value: Any) -> bool | tuple[type[BaseException], ...]:
    if isinstance(value, bool):
        return value
    if not isinstance(value, (list, tuple)):
        raise _type_error(name, "True, False or a list of exception types", value)
    for kind in value:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise _type_error(name, "True, False or a list of exception types", value)
    return tuple(value)


def _name(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _type_error(name, "a string", value)
    if value == "":
        raise ValueError(f"The option {name!r} must not be empty")
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _type_error(name, "True or False", value)
    return value


def _optional_flag(name: str, value: Any) -> bool | None:
    return None if value is None else _flag(name, value)


_MOST_GROUPS = 1000


def _concurrency_groups(name: str, value: Any) -> dict[str, int]:
    if value is None or value == []:
        return {}
    if not isinstance(value, dict):
        raise _type_error(name, "a dict of group names to numbers of calls", value)
    if len(value) > _MOST_GROUPS:
        raise ValueError(f"The option {name!r} can name {_MOST_GROUPS} groups, not {len(value)}")
    for group, limit in value.items():
        if not isinstance(group, str) or not group:
            raise TypeError(f"The names in {name!r} must be strings, not {group!r}")
        if isinstance(limit, bool) or not isinstance(limit, int):
            raise _type_error(f"{name}[{group!r}]", "a whole number", limit)
        if limit < 1:
            raise ValueError(
                f"max_concurrency must be greater than 0 in each of {name!r}: {group!r} has {limit}"
            )
    return dict(value)


def _max_pending_calls(name: str, value: Any) -> int | None:
    if value is None or (value == -1 and not isinstance(value, bool)):
        return None
    if value == 0 and not isinstance(value, bool):
        raise ValueError(f"The option {name!r} must be at least 1, or -1 for no limit: 0")
    return _whole(1)(name, value)  # type: ignore[no-any-return]


def _only(*allowed: Any) -> Check:
    """An option of a later version: what changes nothing passes."""

    def check(name: str, value: Any) -> Any:
        if not any(value is one or (type(value) is type(one) and value == one) for one in allowed):
            choices = " or ".join(map(repr, allowed))
            raise ValueError(f"{name}={value!r} is not supported yet; it may only be {choices}")
        return value

    return check


def _one_of(*allowed: Any) -> Check:
    def check(name: str, value: Any) -> Any:
        if value not in allowed:
            choices = ", ".join(map(repr, allowed))
            raise ValueError(f"The option {name!r} must be one of {choices}, not {value!r}")
        return value

    return check


_TASK, _ACTOR, _METHOD, _BOTH = ("task",), ("actor",), ("method",), ("task", "actor")

# Each option's rules: for which kinds, and what its value must be.
_TABLE: dict[str, dict[tuple[str, ...], Check]] = {
    "num_returns": {("task", "method"): _num_returns},
    "num_cpus": {_BOTH: _amount},
    "num_gpus": {_BOTH: _gpus},
    "memory": {_BOTH: _amount},
    "resources": {_BOTH: _resources},
    "max_retries": {_TASK: _whole(-1, " (-1: without end)")},
    "retry_exceptions": {_TASK: _retry_exceptions},
    "max_calls": {_TASK: _whole(0, " (0: without limit)")},
    "name": {("task", "actor", "method"): _name},
    "enable_task_events": {("task", "actor", "method"): _flag},
    "scheduling_strategy": {_BOTH: _strategy.check},
    "label_selector": {_BOTH: _strategy.check_selector},
    "priority": {_BOTH: _priority},
    "runtime_env": {_BOTH: _only(None, {})},
    "accelerator_type": {_BOTH: _only(None)},
    "object_store_memory": {_BOTH: _only(None)},
    "placement_group": {_BOTH: _only(None, "default")},
    "placement_group_bundle_index": {_BOTH: _only(-1)},
    "placement_group_capture_child_tasks": {_BOTH: _only(None, False)},
    "fallback_strategy": {_BOTH: _only(None, [])},
    "_labels": {_BOTH: _only(None, {})},
    "max_restarts": {_ACTOR: _whole(-1, " (-1: without end)")},
    "max_task_retries": {("actor", "method"): _whole(-1, " (-1: without end)")},
    "max_concurrency": {_ACTOR: _whole(1)},
    "max_pending_calls": {_ACTOR: _max_pending_calls},
    "concurrency_groups": {_ACTOR: _concurrency_groups},
    "concurrency_group": {_METHOD: _name},
    "lifetime": {_ACTOR: _one_of(None, "detached", "non_detached")},
    "namespace": {_ACTOR: _name},
    "get_if_exists": {_ACTOR: _flag},
    "allow_out_of_order_execution": {_ACTOR: _optional_flag},
    "enable_tensor_transport": {_ACTOR: _only(None, False)},
    "_generator_backpressure_num_objects": {("task", "method"): _only(None)},
}

# Names of older versions of Ray, still found in programs.
_OLD_NAMES = {"num_return_vals": "num_returns"}
_WHAT = {"task": "remote functions", "actor": "actors", "method": "actor methods"}


def valid_names(kind: Kind | None = None) -> list[str]:
    """The options there are, for one kind or for any."""
    return [
        name
        for name, rules in _TABLE.items()
        if kind is None or any(kind in kinds for kinds in rules)
    ]


def check(kind: Kind, given: dict[str, Any]) -> dict[str, Any]:
    """`given`, each value checked, under its current name."""
    checked: dict[str, Any] = {}
    for written, value in given.items():
        name = _OLD_NAMES.get(written, written)
        rule = next((rule for kinds, rule in _TABLE.get(name, {}).items() if kind in kinds), None)
        if rule is None:
            raise ValueError(
                f"Invalid option keyword {written!r} for {_WHAT[kind]}. "
                f"Valid ones are {valid_names(kind)}."
            )
        if name in checked and written != name:
            raise ValueError(f"{written} is the old name of {name}: give one of them")
        checked[name] = rule(written, value)
    return checked


def check_known(given: dict[str, Any]) -> None:
    """Refuses names that neither tasks nor actors have, before it is known which of them it is."""
    for name in given:
        if name not in _TABLE and name not in _OLD_NAMES:
            raise ValueError(f"Invalid option keyword {name!r}. Valid ones are {valid_names()}.")


def task_resources(options: dict[str, Any]) -> dict[str, float]:
    """What a task occupies while it runs: one CPU unless told otherwise."""
    cpus = options.get("num_cpus")
    return _nonzero(1 if cpus is None else cpus, options)


def actor_resources(options: dict[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """What an actor needs to be placed, and what it occupies for life.

    As in Ray: an actor that asks for nothing needs a CPU to start and holds none, so that there can
    be many; one that asks for anything holds a CPU with it, unless `num_cpus` says otherwise.
    """
    cpus = options.get("num_cpus")
    if cpus is None and not options.get("num_gpus") and not options.get("resources"):
        return _nonzero(1, options), _nonzero(0, options)
    held = _nonzero(1 if cpus is None else cpus, options)
    return held, held


def _nonzero(cpus: float, options: dict[str, Any]) -> dict[str, float]:
    amounts = {
        "CPU": cpus,
        "GPU": options.get("num_gpus"),
        "memory": options.get("memory"),
        **(options.get("resources") or {}),
    }
    return {name: float(amount) for name, amount in amounts.items() if amount}
