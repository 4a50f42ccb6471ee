"""Options that say where something may run: what is refused, and what the engine is told."""

from __future__ import annotations

import oxiray as ray
import pytest
from oxiray import _strategy
from oxiray.util.scheduling_strategies import (
    DoesNotExist,
    Exists,
    In,
    NodeAffinitySchedulingStrategy,
    NodeLabelSchedulingStrategy,
    NotIn,
    PlacementGroupSchedulingStrategy,
)

ID = 28 * "ab"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"scheduling_strategy": "RANDOM"}, "scheduling_strategy"),
        ({"scheduling_strategy": "spread"}, "Did you mean 'SPREAD'"),
        ({"scheduling_strategy": "SPRED"}, "Did you mean 'SPREAD'"),
        ({"scheduling_strategy": 5}, "scheduling_strategy"),
        ({"scheduling_strategy": PlacementGroupSchedulingStrategy(None, 0)}, "bundle index"),
        ({"scheduling_strategy": NodeAffinitySchedulingStrategy("ab", soft=True)}, "node_id"),
        ({"label_selector": ["a"]}, "label_selector"),
        ({"label_selector": {"a b": "c"}}, "a b"),
        ({"label_selector": {"a": "c d"}}, "c d"),
        ({"label_selector": {"a": 5}}, "label_selector"),
        ({"label_selector": {"a": "in(b"}}, "parenthesis"),
        ({"label_selector": {"a": "in()"}}, "values"),
        ({"label_selector": {"a": "!"}}, "value"),
        ({"label_selector": {"-/a": "b"}}, "prefix"),
        ({"fallback_strategy": {"label_selector": {}}}, "fallback_strategy.*list"),
        ({"fallback_strategy": ["zone"]}, r"fallback_strategy\[0\]"),
        ({"fallback_strategy": [{"label_selector": {}}, {}]}, r"fallback_strategy\[1\] is empty"),
        ({"fallback_strategy": [{"labels": {}}]}, "Did you mean 'label_selector'"),
        ({"fallback_strategy": [{"label_selector": {"a": "c d"}}]}, "c d"),
        ({"priority": 101}, "priority"),
        ({"priority": -101}, "priority"),
        ({"priority": 0.5}, "priority"),
    ],
    ids=str,
)
def test_wrong_values_are_refused_by_name(options, says):
    function = ray.remote(lambda: 1)
    actor = ray.remote(type("A", (), {}))
    for one in (function, actor):
        with pytest.raises((TypeError, ValueError), match=says):
            one.options(**options).remote()


def test_operators():
    with pytest.raises(ValueError, match="non-empty"):
        In()
    with pytest.raises(ValueError, match="position 1"):
        NotIn("a", 5)
    with pytest.raises(ValueError, match="cannot both be empty"):
        NodeLabelSchedulingStrategy({})
    with pytest.raises(ValueError, match="hard"):
        NodeLabelSchedulingStrategy({"a": "b"})
    with pytest.raises(ValueError, match="soft"):
        NodeLabelSchedulingStrategy(None, soft={"a!": Exists()})


def told(**options):
    return _strategy.encode(options, ({},), "it")


def test_what_the_engine_is_told():
    assert told() is None and told(scheduling_strategy="DEFAULT", label_selector={}) is None
    assert told(scheduling_strategy="SPREAD")["spread"]
    affinity = told(scheduling_strategy=NodeAffinitySchedulingStrategy(ID, soft=True))
    assert affinity["node"] == bytes.fromhex(ID) and affinity["soft"]
    assert not affinity["spread"] and affinity["labels"] == []
    selector = {"a": "b", "c": "!d", "e": "in(f, g)", "x.y/h": "!in(i)"}
    assert told(label_selector=selector)["labels"] == [
        ("a", "in", ["b"]),
        ("c", "not_in", ["d"]),
        ("e", "in", ["f", "g"]),
        ("x.y/h", "not_in", ["i"]),
    ]
    labels = NodeLabelSchedulingStrategy(
        {"a": In("b", "c"), "d": Exists()}, soft={"e": NotIn("f"), "g": DoesNotExist()}
    )
    encoded = told(scheduling_strategy=labels, label_selector={"x": "y"})
    assert encoded["labels"] == [
        ("x", "in", ["y"]),
        ("a", "in", ["b", "c"]),
        ("d", "exists", []),
    ]
    fallbacks = [{"label_selector": {"z": "1"}}, {"label_selector": {}}]
    wanted = told(label_selector={"x": "y"}, fallback_strategy=fallbacks)
    assert wanted["fallbacks"] == [[("z", "in", ["1"])], []]
    hard = NodeLabelSchedulingStrategy({"d": Exists()})
    wanted = told(scheduling_strategy=hard, label_selector={"x": "y"}, fallback_strategy=fallbacks)
    assert wanted["fallbacks"][1] == [("d", "exists", [])]
    assert encoded["soft_labels"] == [("e", "not_in", ["f"]), ("g", "does_not_exist", [])]


def test_the_alias_has_them_too():
    ray_strategies = pytest.importorskip("ray.util.scheduling_strategies")
    assert ray_strategies.In is In


LABELS = """
import oxiray as ray

ray.init(num_cpus=1, resources={"accelerator_type:T4": 1}, labels={"ray.io/node-group": "mine"})
labels = ray.get_runtime_context().get_node_labels()
del labels["ray.io/node-id"]
print(sorted(labels.items()))
spot = ray.remote(label_selector={"ray.io/market-type": "spot"})(lambda: 5)
assert ray.get(spot.remote(), timeout=30) == 5
"""


def test_a_node_has_rays_labels_by_itself(driver):
    around = {
        "RAY_NODE_MARKET_TYPE": "spot",
        "RAY_NODE_TYPE_NAME": "a label that is given counts more",
        "RAY_NODE_REGION": "here",
        "RAY_NODE_ZONE": "",
    }
    assert eval(driver(LABELS, env=around).stdout) == [
        ("ray.io/accelerator-type", "T4"),
        ("ray.io/availability-region", "here"),
        ("ray.io/market-type", "spot"),
        ("ray.io/node-group", "mine"),
    ]
