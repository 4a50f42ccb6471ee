"""Placement groups on the way to the engine: bundles checked, and who goes into which.

`util/placement_group.py` is what users see of them.
"""

from __future__ import annotations

from . import _native, _strategy

TYPE_CHECKING = False  # see __init__
if TYPE_CHECKING:
    from typing import Any

    from .util.placement_group import PlacementGroup

    Bundles = list[dict[str, float]]

STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
_EXAMPLE = '[{"CPU": 1.0}, {"GPU": 1.0}]'
NODE_ID = "ray.io/node-id"
_LONGEST_NAME = 1000


def check_strategy(strategy: Any, topology: Any) -> str:
    """What `strategy=` and `topology_strategy=` say of nodes."""
    if topology is None:
        if strategy is not None and strategy not in STRATEGIES:
            from ._options import did_you_mean

            hint = did_you_mean(strategy, STRATEGIES) if isinstance(strategy, str) else ""
            raise ValueError(
                f"Invalid placement group strategy {strategy!r}. Supported strategies are: "
                f"{', '.join(STRATEGIES)}.{hint}"
            )
        return strategy or "PACK"
    if strategy is not None:
        raise ValueError(
            "`strategy` and `topology_strategy` cannot both be specified: give "
            f"topology_strategy={{{NODE_ID!r}: ...}} alone."
        )
    if not isinstance(topology, dict):
        raise ValueError(f"`topology_strategy` must be a dict, not {topology!r}")
    labels = []
    for key, value in topology.items():
        if not isinstance(key, str) or not key:
            raise ValueError(f"`topology_strategy` keys must be non-empty strings, not {key!r}")
        if value not in STRATEGIES:
            raise ValueError(
                f"Invalid topology strategy {value!r} for label {key!r}. Supported strategies are: "
                f"{', '.join(STRATEGIES)}."
            )
        if key != NODE_ID:
            labels.append(key)
            if value != "STRICT_PACK":
                raise ValueError(
                    f"Topology strategy {value!r} for label {key!r}: only 'STRICT_PACK' is "
                    f"supported for labels other than {NODE_ID!r}"
                )
    if len(labels) > 1:
        raise ValueError(f"`topology_strategy` supports at most one topology label, not {labels}")
    if labels:
        raise ValueError(
            f"topology_strategy={{{labels[0]!r}: ...}}: other labels than {NODE_ID!r} are not "
            "supported yet. Give bundle_label_selector= to have the bundles on nodes with a label."
        )
    return str(topology.get(NODE_ID, "PACK"))


def check_bundles(bundles: Any) -> Bundles:
    """The rule of `bundles=`: amounts as floats."""
    if not isinstance(bundles, list):
        raise ValueError(f"Placement group bundles must be a list, not {bundles!r}")
    if not bundles:
        raise ValueError(
            "Bundles must be a non-empty list of resource dictionaries. For example: "
            f"`{_EXAMPLE}`. Got empty list instead."
        )
    return [_check_bundle(index, bundle) for index, bundle in enumerate(bundles)]


def _check_bundle(index: int, bundle: Any) -> dict[str, float]:
    def is_amount(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    if not (
        isinstance(bundle, dict)
        and all(isinstance(name, str) for name in bundle)
        and all(map(is_amount, bundle.values()))
    ):
        raise ValueError(
            "Bundles must be a non-empty list of resource dictionaries. For example: "
            f"`{_EXAMPLE}`. Bundle {index} is {bundle!r}."
        )
    if "bundle" in bundle:
        raise ValueError(
            f"The resource name 'bundle' is reserved for placement groups: bundle {index} is "
            f"{bundle!r}. Give the resource another name."
        )
    for name, amount in bundle.items():
        if not 0 <= amount < float("inf"):  # also refuses nan
            raise ValueError(
                f"The amount of {name!r} in bundle {index} cannot be negative or infinite: "
                f"{amount!r}"
            )
    if not any(bundle.values()):
        raise ValueError(
            "Bundles cannot be an empty dictionary or resources with only 0 values. Bundle "
            f"{index} is {bundle!r}."
        )
    return {name: float(amount) for name, amount in bundle.items()}


def warn_of_store_memory(bundles: Bundles) -> None:
    """Bundles may ask for memory of the store, and get none."""
    if any("object_store_memory" in bundle for bundle in bundles):
        import warnings

        warnings.warn(
            "Setting 'object_store_memory' for bundles is deprecated since it doesn't actually "
            "reserve the required object store memory: objects that do not fit go to disk.",
            DeprecationWarning,
            stacklevel=3,
        )


def check_selectors(selectors: Any, bundles: Bundles) -> list[list[_strategy.Selector]]:
    """The rule of `bundle_label_selector=`: one for each bundle."""
    name = "bundle_label_selector"
    if selectors is None or selectors == []:
        return [[] for _ in bundles]
    if not isinstance(selectors, list):
        raise ValueError(f"Placement group {name} must be a list, not {selectors!r}")
    if len(selectors) != len(bundles):
        raise ValueError(
            f"Invalid bundle label selector {selectors!r}. The length of `{name}` should equal the "
            f"length of `bundles`, {len(bundles)}."
        )
    return [_check_selector(name, selector) for selector in selectors]


def _check_selector(name: str, selector: Any) -> list[_strategy.Selector]:
    if not (
        isinstance(selector, dict)
        and all(isinstance(key, str) for key in selector)
        and all(isinstance(value, str) for value in selector.values())
    ):
        raise ValueError(
            "Bundle label selector must be a list of string dictionary label selectors. For "
            f"example: `[{{'ray.io/market-type': 'spot'}}]`. It has {selector!r}."
        )
    try:
        return [_strategy.selector(name, key, text) for key, text in selector.items()]
    except ValueError as error:
        raise ValueError(f"Invalid label selector provided in {name}: {error}") from None


def check_name(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError(f"The name of a placement group must be a string, not {name!r}")
    if len(name.encode(errors="replace")) > _LONGEST_NAME:
        raise ValueError(
            f"The name of a placement group can have {_LONGEST_NAME} bytes: {name[:40]!r}..."
        )
    return name


def check_option(name: str, value: Any) -> Any:
    """The rule of the option `placement_group`."""
    if value is None or (isinstance(value, str) and value == "default"):
        return value
    from .util.placement_group import PlacementGroup

    if isinstance(value, PlacementGroup):
        import warnings

        from ._call_site import frames_inside

        warnings.warn(
            "placement_group parameter is deprecated. Use scheduling_strategy="
            "PlacementGroupSchedulingStrategy(placement_group=...) instead.",
            DeprecationWarning,
            stacklevel=frames_inside() + 1,
        )
        return value
    raise TypeError(
        f"The option {name!r} must be a placement group, None or 'default', not {value!r}"
    )


def place(
    options: dict[str, Any],
    needs: tuple[dict[str, float], ...],
    what: str,
) -> dict[str, Any] | None:
    """The group that a task or actor asks for, as the engine is told; None: none.

    `needs` is what it takes to run, and to begin; `what` it is, for the errors.
    """
    strategy = options.get("scheduling_strategy")
    if strategy is None:
        group = options.get("placement_group", "default")
        index = options.get("placement_group_bundle_index", -1)
        capture = options.get("placement_group_capture_child_tasks")
    elif hasattr(strategy, "placement_group"):
        group = strategy.placement_group
        index = strategy.placement_group_bundle_index
        capture = strategy.placement_group_capture_child_tasks
    else:
        return None
    if group is None or group == "default":
        from .util.placement_group import PlacementGroup

        group = PlacementGroup.empty()
    check_index(group, index)
    if group.is_empty:
        return None
    for needed in needs:
        _check_fits(group.bundle_specs, needed, what)
    if capture is None:
        capture = _native.is_running() and _native.context()["captures"]
    return {
        "group": group.id.binary(),
        "bundle": None if index == -1 else index,
        "capture": bool(capture),
    }


def check_index(group: PlacementGroup, index: Any) -> None:
    """Raises if a group has no such bundle."""
    if isinstance(index, bool) or not isinstance(index, int):
        raise TypeError(f"placement_group_bundle_index must be a whole number, not {index!r}")
    if group.is_empty:
        if index != -1:
            raise ValueError(
                f"If placement group is not set, the value of bundle index must be -1, not {index}."
            )
        return
    if not -1 <= index < group.bundle_count:
        raise ValueError(
            f"placement group bundle index {index} is invalid. Valid placement group indexes: "
            f"0-{group.bundle_count - 1}, or -1 for any"
        )


def _check_fits(bundles: Bundles, needs: dict[str, float], what: str) -> None:
    def fits(bundle: dict[str, float]) -> bool:
        return all(bundle.get(name, 0) >= amount for name, amount in needs.items())

    def shown(amounts: dict[str, float]) -> dict[str, float]:
        return {
            name: int(amount) if amount == int(amount) else amount
            for name, amount in amounts.items()
        }

    if not any(map(fits, bundles)):
        raise ValueError(
            f"Cannot schedule {what} with the placement group because the resource request "
            f"{shown(needs)} cannot fit into any bundles for the placement group, "
            f"{[shown(bundle) for bundle in bundles]}."
        )


_captured: tuple[bytes, Bundles] = (b"", [])


def check_captured(group: bytes, needs: dict[str, float], what: str) -> None:
    """Refuses what cannot be in the group of the task or actor that submits it."""
    global _captured
    if _captured[0] != group:
        from ._ids import PlacementGroupID
        from .util.placement_group import PlacementGroup

        _captured = group, PlacementGroup(PlacementGroupID(group)).bundle_specs
    if _captured[1]:
        _check_fits(_captured[1], needs, what)
