"""Where tasks and actors may run: the options that say so, checked, and what the engine is told.

Labels have Kubernetes' and Ray's rules, as `crates/scheduler/src/labels.rs` has them.
"""

from __future__ import annotations

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from typing import Any

    # A label's key, the test, its values.
    Selector = tuple[str, str, list[str]]

_GROUP_OPTIONS = frozenset(("placement_group", "placement_group_bundle_index"))
_LONGEST_NAME = 63
_LONGEST_PREFIX = 253
_ID_DIGITS = 56
_BETWEEN = frozenset("-_.")


def check(name: str, value: Any) -> Any:
    """The rule of the option `scheduling_strategy`."""
    if value is None or value in ("DEFAULT", "SPREAD"):
        return value
    if not isinstance(value, str):
        from .util import scheduling_strategies as strategies

        if isinstance(value, strategies.NodeLabelSchedulingStrategy):
            return value
        if isinstance(value, strategies.NodeAffinitySchedulingStrategy):
            _node(name, value.node_id)
            return value
        if isinstance(value, strategies.PlacementGroupSchedulingStrategy):
            return value
    from ._options import did_you_mean

    hint = did_you_mean(value, ("DEFAULT", "SPREAD")) if isinstance(value, str) else ""
    raise ValueError(
        f"The option {name!r} must be None, 'DEFAULT', 'SPREAD', or a strategy of "
        f"util.scheduling_strategies, not {value!r}.{hint}"
    )


def _node(name: str, node_id: str) -> bytes:
    try:
        if len(node_id) == _ID_DIGITS:
            return bytes.fromhex(node_id)
    except ValueError:
        pass
    raise ValueError(
        f"{name}=NodeAffinitySchedulingStrategy(node_id={node_id!r}): a node's id has {_ID_DIGITS} "
        "hexadecimal digits, as nodes() and get_runtime_context().get_node_id() say it"
    )


def check_selector(name: str, value: Any) -> dict[str, str] | None:
    """The rule of the option `label_selector`."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise TypeError(f"The option {name!r} must be a dict of strings, not {value!r}")
    for key, text in value.items():
        selector(name, key, text)
    return dict(value)


def check_fallbacks(name: str, value: Any) -> list[dict[str, Any]] | None:
    """The rule of the option `fallback_strategy`."""
    if value is None:
        return None
    wanted = "a list of dicts, each {'label_selector': {...}}"
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"The option {name!r} must be {wanted}, not {value!r}")
    for index, one in enumerate(value):
        where = f"{name}[{index}]"
        if not isinstance(one, dict):
            raise ValueError(f"{where} must be {{'label_selector': {{...}}}}, not {one!r}")
        if not one:
            raise ValueError(f"{where} is empty: {{'label_selector': {{}}}} is any node")
        for option in one:
            if option != "label_selector":
                from ._options import did_you_mean

                raise ValueError(
                    f"{where} has the option {option!r}, and only 'label_selector' can be in it."
                    f"{did_you_mean(str(option), ['label_selector'])}"
                )
        check_selector(f"{where}['label_selector']", one["label_selector"])
    return [dict(one) for one in value]


def selector(name: str, key: Any, text: Any) -> Selector:
    """An entry of `label_selector`: `value`, `!value`, `in(a,b)` or `!in(a,b)`."""
    check_key(name, key)
    if not isinstance(text, str):
        raise TypeError(f"{name}[{key!r}] must be a string, not {text!r}")
    wanted = text.removeprefix("!")
    negated = wanted != text
    if wanted.startswith("in("):
        if not wanted.endswith(")"):
            raise ValueError(f"{name}[{key!r}]={text!r} lacks its closing parenthesis")
        values = [part.strip() for part in wanted[3:-1].split(",")]
        if not all(values):
            raise ValueError(f"{name}[{key!r}]={text!r} must list values, as in 'in(a,b)'")
    else:
        values = [wanted]
        if negated and not wanted:  # more likely a slip than "not the empty value"
            raise ValueError(f"{name}[{key!r}]={text!r} names no value")
    for value in values:
        check_value(name, key, value)
    return key, "not_in" if negated else "in", values


def check_key(where: str, key: Any) -> None:
    if not isinstance(key, str):
        raise ValueError(f"{where}: the key of a label must be a string, not {key!r}")
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= _LONGEST_PREFIX and all(map(_is_name, prefix.split(".")))):
        raise ValueError(
            f"{where}: the prefix {prefix!r} of the key {key!r} must be names separated by dots, "
            f"at most {_LONGEST_PREFIX} characters"
        )
    if not _is_name(name):
        raise ValueError(f"{where}: the key {key!r} is not valid: a name {_RULE}")


def check_value(where: str, key: str, value: str) -> None:
    if value and not _is_name(value):
        raise ValueError(f"{where}: the value {value!r} of {key!r} is not valid: a value {_RULE}")


_RULE = (
    f"has at most {_LONGEST_NAME} letters, digits, '-', '_' or '.', and begins and ends with a "
    "letter or digit"
)


def _is_name(text: str) -> bool:
    def is_plain(character: str) -> bool:
        return character.isascii() and character.isalnum()

    return (
        0 < len(text) <= _LONGEST_NAME
        and is_plain(text[0])
        and is_plain(text[-1])
        and all(is_plain(character) or character in _BETWEEN for character in text)
    )


def is_captured(options: dict[str, Any]) -> bool:
    """Whether it goes into the group of whoever submits it, if that captures children."""
    return (
        options.get("scheduling_strategy") is None
        and options.get("placement_group", "default") == "default"
        and options.get("placement_group_capture_child_tasks") is not False
    )


def encode(
    options: dict[str, Any], needs: tuple[dict[str, float], ...], what: str
) -> dict[str, Any] | None:
    """What the engine is told; None: any node will do.

    `needs` is what it takes to run, and to begin; `what` it is, for the errors.
    """
    strategy = options.get("scheduling_strategy")
    labels = options.get("label_selector")
    if not (_GROUP_OPTIONS.isdisjoint(options) and (strategy is None or isinstance(strategy, str))):
        from . import _groups

        place = _groups.place(options, needs, what)
        if place is not None:
            return place
        if hasattr(strategy, "placement_group"):
            strategy = None
    if strategy in (None, "DEFAULT") and not labels:
        return None
    encoded: dict[str, Any] = {
        "spread": strategy == "SPREAD",
        "node": b"",
        "soft": False,
        "spill_on_unavailable": False,
        "fail_on_unavailable": False,
        "labels": _selectors(labels),
        "soft_labels": [],
        "fallbacks": [
            _selectors(one["label_selector"]) for one in options.get("fallback_strategy") or ()
        ],
    }
    if strategy is None or isinstance(strategy, str):
        return encoded
    if hasattr(strategy, "node_id"):
        encoded["node"] = _node("scheduling_strategy", strategy.node_id)
        encoded["soft"] = bool(strategy.soft)
        encoded["spill_on_unavailable"] = bool(strategy._spill_on_unavailable)
        encoded["fail_on_unavailable"] = bool(strategy._fail_on_unavailable)
    else:
        hard = _tests(strategy.hard)
        for labels in (encoded["labels"], *encoded["fallbacks"]):
            labels += hard
        encoded["soft_labels"] = _tests(strategy.soft)
    return encoded


def _selectors(labels: dict[str, str] | None) -> list[Selector]:
    return [selector("label_selector", key, text) for key, text in (labels or {}).items()]


def _tests(tests: dict[str, Any]) -> list[Selector]:
    return [(key, test.test, list(test.values)) for key, test in tests.items()]
