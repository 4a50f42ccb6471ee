"""Which nodes a task or an actor may run on: values of the option `scheduling_strategy=`."""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "DoesNotExist",
    "Exists",
    "In",
    "NodeAffinitySchedulingStrategy",
    "NodeLabelSchedulingStrategy",
    "NotIn",
    "PlacementGroupSchedulingStrategy",
]


class PlacementGroupSchedulingStrategy:
    """Inside a placement group.

    Args:
        placement_group: the group; None: in none, also if whoever submits it is in one.
        placement_group_bundle_index: which bundle; -1: any that has room.
        placement_group_capture_child_tasks: what it submits itself goes into the group, too,
            unless that says otherwise; None: if that is so where it is submitted.
    """

    def __init__(
        self,
        placement_group: Any,
        placement_group_bundle_index: int = -1,
        placement_group_capture_child_tasks: bool | None = None,
    ) -> None:
        self.placement_group = placement_group
        self.placement_group_bundle_index = placement_group_bundle_index
        self.placement_group_capture_child_tasks = placement_group_capture_child_tasks


class NodeAffinitySchedulingStrategy:
    """On one node.

    Args:
        node_id: the node's id in hexadecimal, as `nodes()` and `get_node_id()` say it.
        soft: another node will do if that one is gone; otherwise the task or actor fails.
        _spill_on_unavailable: another node will do if that one has no room now.
        _fail_on_unavailable: it fails if that one has no room now.
    """

    def __init__(
        self,
        node_id: Any,
        soft: bool,
        _spill_on_unavailable: bool = False,
        _fail_on_unavailable: bool = False,
    ) -> None:
        self.node_id: str = node_id if isinstance(node_id, str) else node_id.hex()
        self.soft = soft
        self._spill_on_unavailable = _spill_on_unavailable
        self._fail_on_unavailable = _fail_on_unavailable

    def __repr__(self) -> str:
        return f"NodeAffinitySchedulingStrategy({self.node_id!r}, soft={self.soft!r})"


class _Test:
    """What is asked of a label."""

    test: ClassVar[str]  # the engine's name of it
    values: list[str]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.values))})"


class _ValuesTest(_Test):
    def __init__(self, *values: str) -> None:
        name = type(self).__name__
        if not values:
            raise ValueError(
                f"The variadic parameter of the {name} operator must be a non-empty tuple: e.g. "
                f'{name}("value1", "value2").'
            )
        for position, value in enumerate(values):
            if not isinstance(value, str):
                raise ValueError(
                    f"Type of value in position {position} for the {name} operator must be str, "
                    f"e.g. {name}('value1', 'value2'), not {value!r}"
                )
        self.values = list(values)


class In(_ValuesTest):
    """The label is one of the values."""

    test = "in"


class NotIn(_ValuesTest):
    """The label is none of the values, or the node has none."""

    test = "not_in"


class Exists(_Test):
    """The node has the label."""

    test = "exists"

    def __init__(self) -> None:
        self.values = []


class DoesNotExist(_Test):
    """The node has not the label."""

    test = "does_not_exist"

    def __init__(self) -> None:
        self.values = []


class NodeLabelSchedulingStrategy:
    """On nodes with certain labels: `NodeLabelSchedulingStrategy({"region": In("eu")})`.

    Args:
        hard: what must hold, by the labels' keys.
        soft: what should hold; where it does nowhere, other nodes will do.
    """

    def __init__(self, hard: dict[str, _Test] | None, *, soft: dict[str, _Test] | None = None):
        if not hard and not soft:
            raise ValueError(
                "The `hard` and `soft` parameter of NodeLabelSchedulingStrategy cannot both be "
                "empty."
            )
        self.hard = _checked("hard", hard)
        self.soft = _checked("soft", soft)

    def __repr__(self) -> str:
        return f"NodeLabelSchedulingStrategy({self.hard!r}, soft={self.soft!r})"


def _checked(name: str, tests: dict[str, _Test] | None) -> dict[str, _Test]:
    from .. import _strategy

    if tests is None:
        return {}
    where = f"NodeLabelSchedulingStrategy({name}=)"
    if not isinstance(tests, dict):
        raise ValueError(f"{where} must be a dict of keys to operators, not {tests!r}")
    for key, test in tests.items():
        _strategy.check_key(where, key)
        if not isinstance(test, _Test):
            raise ValueError(
                f"{where}: the operator of {key!r} must be an `In`, `NotIn`, `Exists` or "
                f"`DoesNotExist`, not {test!r}"
            )
        for value in test.values:
            _strategy.check_value(where, key, value)
    return dict(tests)


SchedulingStrategyT = (
    None
    | str  # "DEFAULT" or "SPREAD"
    | PlacementGroupSchedulingStrategy
    | NodeAffinitySchedulingStrategy
    | NodeLabelSchedulingStrategy
)
