"""The options of tasks and actors: a table of each option's rule, and what follows from them.

Options of later versions are known here too: their default is accepted, anything else is refused
with a clear error, never ignored.
"""

from __future__ import annotations

from . import _strategy

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Literal

    Kind = Literal["task", "actor", "method"]
    Check = Callable[[str, Any], Any]  # returns the value to keep, or raises
    Retried = bool | tuple[type[BaseException], ...]  # after which exceptions it is tried again


# The words of these errors are Ray's: programs and their tests look for them.
def _type_error(name: str, wanted: type | tuple[type, ...], value: object) -> TypeError:
    return TypeError(
        f"The type of keyword {name!r} must be {wanted}, but received type {type(value)}: {value!r}"
    )


_NONE = type(None)
_NUMBER = (float, int, _NONE)
_WHOLE = (int, _NONE)
_TEXT = (str, _NONE)
_DICT = (dict, _NONE)
# Resources are counted in these parts.
_FINEST = 0.0001


def _amount(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _type_error(name, _NUMBER, value)
    if not 0 <= value < float("inf"):  # also refuses nan
        raise ValueError(f"The quantity of resource {name} cannot be negative: {value!r}")
    if 0 < value < _FINEST:
        raise ValueError(
            f"The precision of the fractional quantity of resource {name} cannot go beyond "
            f"{_FINEST}: {value!r}"
        )
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
        raise _type_error(name, _DICT, value)
    for key, amount in value.items():
        if not isinstance(key, str) or not key:
            raise TypeError(f"The names in {name!r} must be strings, not {key!r}")
        if key in _USE_INSTEAD:
            raise ValueError(f"Use the option {_USE_INSTEAD[key]}= instead of {key!r} in {name}=")
        if key == "object_store_memory":
            raise ValueError(f"{key!r} cannot be asked for in {name}=")
        if amount is None:
            raise _type_error(f"{name}[{key!r}]", _NUMBER, amount)
        _amount(key, amount)
    return dict(value)


_MOST = 2**31 - 1
_HIGHEST = 100  # priority


_ACCEPTED = {
    -1: "0, -1 or a positive integer, where -1 represents infinity.",
    0: "0 or a positive integer.",
    1: "a positive integer.",
}


def _whole(least: int) -> Check:
    def check(name: str, value: Any) -> int | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise _type_error(name, _WHOLE, value)
        if value < least:
            raise ValueError(
                f"The keyword {name!r} only accepts None, {_ACCEPTED[least]} It got {value!r}"
            )
        if value > _MOST:
            raise ValueError(f"The keyword {name!r} must be at most {_MOST}: {value!r}")
        return value

    return check


def _priority(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise _type_error(name, _WHOLE, value)
    if not -_HIGHEST <= value <= _HIGHEST:
        raise ValueError(
            f"The option {name!r} must be between -{_HIGHEST} and {_HIGHEST}: {value!r}"
        )
    return value


def _num_returns(name: str, value: Any) -> int | str | None:
    if value is None or (isinstance(value, str) and value in ("dynamic", "streaming")):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise _type_error(name, (int, str, _NONE), value)
    if isinstance(value, str) or not 0 <= value <= _MOST:
        raise ValueError(
            f"The keyword {name!r} only accepts None, a non-negative integer, 'streaming' (for "
            f"generators), or 'dynamic'. It got {value!r}"
        )
    return value


def _ahead(name: str, value: Any) -> int | None:
    if value == 0 and not isinstance(value, bool):
        raise ValueError(
            f"{name}=0 is not allowed. Use a value > 0. If the value is equal to 1, the behavior "
            "is identical to Python generator (generator 1 object whenever `next` is called). Use "
            "-1 to disable this feature."
        )
    return None if value == -1 else _whole(1)(name, value)


def _retry_exceptions(name: str, value: Any) -> Retried:
    if isinstance(value, bool):
        return value
    if not isinstance(value, (list, tuple)):
        raise _type_error(name, (bool, list, tuple), value)
    for kind in value:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise ValueError(f"{name} must be either a boolean or a list of exceptions: {value!r}")
    return tuple(value)


def _name(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _type_error(name, _TEXT, value)
    if value == "":
        raise ValueError(f"The option {name!r} must not be empty")
    return value


def _actor_name(name: str, value: Any) -> str | None:
    if value == "":
        raise ValueError("Actor name cannot be an empty string: leave the option 'name' out")
    return _name(name, value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _type_error(name, bool, value)
    return value


def _optional_flag(name: str, value: Any) -> bool | None:
    return None if value is None else _flag(name, value)


def _runtime_env(name: str, value: Any) -> Any:
    if value is None:
        return None
    from . import _environment

    return _environment.check(f"The option {name!r}", value)


def _placement_group(name: str, value: Any) -> Any:
    from . import _groups

    return _groups.check_option(name, value)


def _bundle_index(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _type_error(name, int, value)
    return value  # whether there is such a bundle is known with the group


_MOST_GROUPS = 1000


def _concurrency_groups(name: str, value: Any) -> dict[str, int]:
    if value is None or value == []:
        return {}
    if not isinstance(value, dict):
        raise _type_error(name, (list, dict, _NONE), value)
    if len(value) > _MOST_GROUPS:
        raise ValueError(f"The option {name!r} can name {_MOST_GROUPS} groups, not {len(value)}")
    for group, limit in value.items():
        if not isinstance(group, str) or not group:
            raise TypeError(f"The names in {name!r} must be strings, not {group!r}")
        if isinstance(limit, bool) or not isinstance(limit, int):
            raise _type_error(f"{name}[{group!r}]", int, limit)
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


def _accelerator(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _type_error(name, _TEXT, value)
    if value == "":
        raise ValueError(f"The option {name!r} must not be empty")
    return value


def _labels(name: str, value: Any) -> dict[str, str] | None:
    """Ray schedules nothing by them, and neither do we: they are checked, and that is all."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _type_error(name, _DICT, value)
    for key, text in value.items():
        _strategy.check_key(name, key)
        if not isinstance(text, str):
            raise _type_error(f"{name}[{key!r}]", str, text)
        _strategy.check_value(name, key, text)
    return dict(value)


def _not_of_tasks(name: str, value: Any) -> None:
    if value is not None:
        raise ValueError(f"Setting {name!r} is not implemented for tasks: it is an actor's option")


def _only(*allowed: Any) -> Check:
    """An option of a later version: what changes nothing passes."""

    def check(name: str, value: Any) -> Any:
        if not any(value is one or (type(value) is type(one) and value == one) for one in allowed):
            choices = " or ".join(map(repr, allowed))
            raise ValueError(f"{name}={value!r} is not supported yet; it may only be {choices}")
        return value

    return check


def _lifetime(name: str, value: Any) -> str | None:
    if not isinstance(value, _TEXT):
        raise _type_error(name, _TEXT, value)
    if value not in (None, "detached", "non_detached"):
        raise ValueError(
            f"actor `{name}` argument must be one of 'detached', 'non_detached' and 'None'. "
            f"It got {value!r}"
        )
    return value


_TASK, _ACTOR, _METHOD, _BOTH = ("task",), ("actor",), ("method",), ("task", "actor")

# Each option's rules: for which kinds, and what its value must be.
_TABLE: dict[str, dict[tuple[str, ...], Check]] = {
    "num_returns": {("task", "method"): _num_returns},
    "num_cpus": {_BOTH: _amount},
    "num_gpus": {_BOTH: _gpus},
    "memory": {_BOTH: _amount},
    "resources": {_BOTH: _resources},
    "max_retries": {_TASK: _whole(-1)},
    "retry_exceptions": {("task", "method"): _retry_exceptions},
    "max_calls": {_TASK: _whole(0)},
    "name": {("task", "method"): _name, _ACTOR: _actor_name},
    "enable_task_events": {("task", "actor", "method"): _flag},
    "scheduling_strategy": {_BOTH: _strategy.check},
    "label_selector": {_BOTH: _strategy.check_selector},
    "priority": {_BOTH: _priority},
    "runtime_env": {_BOTH: _runtime_env},
    "accelerator_type": {_BOTH: _accelerator},
    "object_store_memory": {_TASK: _not_of_tasks, _ACTOR: _whole(0)},
    "placement_group": {_BOTH: _placement_group},
    "placement_group_bundle_index": {_BOTH: _bundle_index},
    "placement_group_capture_child_tasks": {_BOTH: _optional_flag},
    "fallback_strategy": {_BOTH: _strategy.check_fallbacks},
    "_labels": {_BOTH: _labels},
    "max_restarts": {_ACTOR: _whole(-1)},
    "max_task_retries": {("actor", "method"): _whole(-1)},
    "max_concurrency": {_ACTOR: _whole(1)},
    "max_pending_calls": {_ACTOR: _max_pending_calls},
    "concurrency_groups": {_ACTOR: _concurrency_groups},
    "concurrency_group": {_METHOD: _name},
    "lifetime": {_ACTOR: _lifetime},
    "namespace": {_ACTOR: _name},
    "get_if_exists": {_ACTOR: _flag},
    "allow_out_of_order_execution": {_ACTOR: _optional_flag},
    "enable_tensor_transport": {_ACTOR: _only(None, False)},
    "tensor_transport": {_METHOD: _only(None)},
    "_num_objects_per_yield": {("task", "method"): _only(None, 1)},
    "_actor_generator_backpressure_num_objects": {_ACTOR: _only(None, -1)},
    "_generator_backpressure_num_objects": {("task", "method"): _ahead},
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
            others = [_WHAT[one] for kinds in _TABLE.get(name, ()) for one in kinds]
            of_others = f" It is an option of {' and '.join(others)}." if others else ""
            raise ValueError(
                f"Invalid option keyword {written!r} for {_WHAT[kind]}.{of_others}"
                f"{did_you_mean(written, valid_names(kind))} Valid ones are {valid_names(kind)}."
            )
        if name in checked and written != name:
            raise ValueError(f"{written} is the old name of {name}: give one of them")
        checked[name] = rule(written, value)
    return checked


def check_known(given: dict[str, Any]) -> None:
    """Refuses names that neither tasks nor actors have, before it is known which of them it is."""
    for name in given:
        if name not in _TABLE and name not in _OLD_NAMES:
            raise ValueError(
                f"Invalid option keyword {name!r}.{did_you_mean(name, valid_names())} "
                f"Valid ones are {valid_names()}."
            )


def did_you_mean(written: str, known: Iterable[str]) -> str:
    """A hint for somebody who mistyped a name, to follow a sentence; empty if none comes near."""
    from difflib import get_close_matches

    names = list(known)
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(written, names, 1) or [
        by_lower[name] for name in get_close_matches(written.lower(), by_lower, 1)
    ]
    return f" Did you mean {near[0]!r}?" if near else ""


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


# A node has so much of a resource named after its accelerators, as in Ray; a task takes a little.
_OF_ACCELERATOR = 0.001


def _nonzero(cpus: float, options: dict[str, Any]) -> dict[str, float]:
    accelerator = options.get("accelerator_type")
    amounts = {
        "CPU": cpus,
        "GPU": options.get("num_gpus"),
        "memory": options.get("memory"),
        "object_store_memory": options.get("object_store_memory"),
        **(options.get("resources") or {}),
    }
    if accelerator is not None:
        amounts[f"accelerator_type:{accelerator}"] = _OF_ACCELERATOR
    return {name: float(amount) for name, amount in amounts.items() if amount}
