"""Placement groups: room for several tasks and actors that is reserved together, or not at all."""

from __future__ import annotations

from typing import Any

from .. import _groups, _native
from .._ids import NodeID, PlacementGroupID
from .._session import auto_init
from ..exceptions import RaySystemError

__all__ = [
    "PlacementGroup",
    "PlacementGroupID",
    "get_current_placement_group",
    "get_placement_group",
    "placement_group",
    "placement_group_table",
    "remove_placement_group",
]

VALID_PLACEMENT_GROUP_STRATEGIES = set(_groups.STRATEGIES)
NODE_ID_LABEL_KEY = _groups.NODE_ID


class _NameTaken(RaySystemError, ValueError):
    """Ray raises the first; it is what was given that is wrong."""

    def __str__(self) -> str:
        return str(self.client_exc)


class PlacementGroup:
    """A handle of a placement group. It may be passed to tasks and actors."""

    @staticmethod
    def empty() -> PlacementGroup:
        """The group that is none."""
        return PlacementGroup(PlacementGroupID.nil())

    def __init__(
        self, id: PlacementGroupID, bundle_cache: list[dict[str, float]] | None = None
    ) -> None:
        self.id = id
        self.bundle_cache = bundle_cache

    @property
    def is_empty(self) -> bool:
        return self.id.is_nil()

    def ready(self) -> _native.ObjectRef:
        """A reference that has this handle as its value once all bundles are reserved."""
        _start()
        if self.is_empty:
            return _native.put(self)
        return _native.group_ready(self.id.binary(), self)

    def wait(self, timeout_seconds: float = 30) -> bool:
        """Waits until all bundles are reserved; False: they are not, by then.

        Of a group that was removed it raises a ValueError.
        """
        _start()
        if self.is_empty or _native.wait_for_group(self.id.binary(), timeout_seconds):
            return True
        found = _find(group=self.id.binary())
        if not found or found[0]["state"] == "REMOVED":
            why = found[0]["reason"] if found else "nothing is known of it"
            raise ValueError(f"Placement group {self.id.hex()} does not exist: {why}")
        return False

    @property
    def bundle_specs(self) -> list[dict[str, float]]:
        """What is reserved, or to be."""
        if not self.bundle_cache and not self.is_empty:
            _start()
            found = _find(group=self.id.binary())
            self.bundle_cache = found[0]["bundles"] if found else []
        return self.bundle_cache or []

    @property
    def bundle_count(self) -> int:
        return len(self.bundle_specs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlacementGroup) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"PlacementGroup({self.id.hex()})"


def placement_group(
    bundles: list[dict[str, float]],
    strategy: str | None = None,
    name: str = "",
    lifetime: str | None = None,
    _soft_target_node_id: str | None = None,
    bundle_label_selector: list[dict[str, str]] | None = None,
    topology_strategy: dict[str, str] | None = None,
) -> PlacementGroup:
    """Asks for room that is reserved for tasks and actors to come. Does not wait for it.

    Args:
        bundles: what is to be reserved; each is in one place.
        strategy: `PACK` on few nodes, `SPREAD` over many, or strictly so: `STRICT_PACK` on one,
            `STRICT_SPREAD` each on one of its own.
        name: to find it by, with `get_placement_group`.
        lifetime: `"detached"`: until it is removed. Otherwise it ends with the program that made
            it, or with the detached actor that did.
        bundle_label_selector: labels that the node of each bundle must have.
        topology_strategy: `{"ray.io/node-id": strategy}`, another way to say `strategy`.
    """
    validate_placement_group(
        bundles,
        strategy,
        lifetime,
        _soft_target_node_id,
        bundle_label_selector,
        topology_strategy,
    )
    chosen = _groups.check_strategy(strategy, topology_strategy)
    prefer = NodeID.from_hex(_soft_target_node_id) if _soft_target_node_id else None
    checked = _groups.check_bundles(bundles)
    selectors = _groups.check_selectors(bundle_label_selector, checked)
    _groups.warn_of_store_memory(checked)
    _groups.check_name(name)
    _start()
    made = _native.create_group(
        list(zip(checked, selectors, strict=True)),
        chosen,
        name=name,
        namespace=_native.context()["namespace"] if name else "",
        detached=lifetime == "detached",
        prefer=prefer.binary() if prefer is not None else b"",
    )
    if made is None:
        raise _NameTaken(
            f"Failed to create placement group {name!r}: the name is taken in this namespace. "
            "Find the group with get_placement_group(), or remove it first."
        )
    return PlacementGroup(PlacementGroupID(made), bundle_cache=checked)


def validate_placement_group(
    bundles: list[dict[str, float]],
    strategy: str | None = None,
    lifetime: str | None = None,
    _soft_target_node_id: str | None = None,
    bundle_label_selector: list[dict[str, str]] | None = None,
    topology_strategy: dict[str, str] | None = None,
) -> bool:
    """Raises what `placement_group` would of such arguments; True if it would not."""
    chosen = _groups.check_strategy(strategy, topology_strategy)
    if _soft_target_node_id and chosen != "STRICT_PACK":
        raise ValueError(
            f"_soft_target_node_id currently only works with STRICT_PACK but got {chosen}"
        )
    if _soft_target_node_id and NodeID.from_hex(_soft_target_node_id).is_nil():
        raise ValueError(f"Invalid hex ID of _soft_target_node_id, got {_soft_target_node_id}")
    checked = _groups.check_bundles(bundles)
    _groups.check_selectors(bundle_label_selector, checked)
    if lifetime not in (None, "detached"):
        raise ValueError(
            "Placement group `lifetime` argument must be either `None` or 'detached'. Got "
            f"{lifetime!r}."
        )
    return True


def check_placement_group_index(placement_group: PlacementGroup, bundle_index: int) -> None:
    """Raises if the group has no such bundle."""
    _groups.check_index(placement_group, bundle_index)


def remove_placement_group(placement_group: PlacementGroup) -> None:
    """Gives back what is reserved. Tasks and actors that are in the group end."""
    if not isinstance(placement_group, PlacementGroup):
        raise TypeError(
            f"remove_placement_group() takes a placement group, not {placement_group!r}"
        )
    _start()
    if not placement_group.is_empty:
        _native.remove_group(placement_group.id.binary())


def get_placement_group(placement_group_name: str) -> PlacementGroup:
    """The group of that name in this namespace."""
    if not placement_group_name:
        raise ValueError("Please supply a non-empty value to get_placement_group")
    _groups.check_name(placement_group_name)
    _start()
    found = _find(name=placement_group_name, namespace=_native.context()["namespace"])
    if not found:
        raise ValueError(f"Failed to look up placement group with name: {placement_group_name}")
    return PlacementGroup(PlacementGroupID(found[0]["group"]), found[0]["bundles"])


def placement_group_table(placement_group: PlacementGroup | None = None) -> dict[str, Any]:
    """How a group fares, or all of them, those removed lately included, by their ids."""
    _start()
    if placement_group is not None:
        found = _find(group=placement_group.id.binary())
        return _row(found[0]) if found else {}
    return {info["group"].hex(): _row(info) for info in _find()}


def _row(info: dict[str, Any]) -> dict[str, Any]:
    places = [node.hex() if node else "" for node in info["nodes"]]
    waited = info["waited_us"] / 1000
    return {
        "placement_group_id": info["group"].hex(),
        "name": info["name"],
        "bundles": dict(enumerate(info["bundles"])),
        "bundles_to_node_id": dict(enumerate(places)),
        "strategy": info["strategy"],
        "state": info["state"],
        "stats": {
            "end_to_end_creation_latency_ms": waited,
            "scheduling_latency_ms": waited,
            "scheduling_attempt": info["attempts"],
            "highest_retry_delay_ms": 0.0,
            "scheduling_state": info["scheduling_state"],
        },
        "reason": info["reason"],
    }


def get_current_placement_group() -> PlacementGroup | None:
    """The group that the task or actor which calls this is in; None: it is in none."""
    _start()
    group = _native.context()["group"]
    return PlacementGroup(PlacementGroupID(group)) if group else None


def _find(*, group: bytes = b"", name: str = "", namespace: str = "") -> list[dict[str, Any]]:
    return _native.find_groups(group=group, name=name, namespace=namespace)


def _start() -> None:
    if not _native.is_running():
        auto_init()
