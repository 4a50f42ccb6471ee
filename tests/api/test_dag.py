"""`dag`: graphs of calls that are described first and made later."""

from __future__ import annotations

import os

import oxiray as ray
import pytest
from oxiray.dag import ClassNode, FunctionNode, InputNode, MultiOutputNode, plot


@ray.remote
def add(a, b=0):
    return a + b


@ray.remote
def total(parts):
    return sum(ray.get(parts["refs"]))


@ray.remote
class Counter:
    def __init__(self, start):
        self.n = start

    def add(self, k):
        self.n += k
        return self.n

    @ray.method(num_returns=2)
    def both(self):
        return self.n, -self.n


def test_a_chain_and_what_is_nested(cluster):
    node = add.bind(add.bind(1, b=2), 10)
    assert isinstance(node, FunctionNode)
    assert ray.get(node.execute()) == 13
    assert ray.get(total.bind({"refs": [add.bind(1, 1), add.bind(2, 2)]}).execute()) == 6


def test_a_node_that_two_need_runs_once(cluster, tmp_path):
    @ray.remote
    def leave_file():
        with open(tmp_path / "runs", "a") as file:
            file.write("x")
        return 1

    shared = leave_file.bind()
    assert ray.get(add.bind(add.bind(shared, 1), shared).execute()) == 3
    assert (tmp_path / "runs").read_text() == "x"


def test_inputs(cluster):
    with InputNode() as given:
        one = add.bind(given, 1)
        many = MultiOutputNode([add.bind(given[0], given[1]), add.bind(given.k, given["k"])])
        item = add.bind(given["x"], given["x"])
    assert ray.get(one.execute(5)) == 6
    assert ray.get(many.execute(1, 2, k=10)) == [3, 20]
    assert ray.get(item.execute({"x": 4})) == 8
    with pytest.raises(ValueError, match="no argument 1"):
        many.execute(1, k=10)


def test_actors(cluster):
    counter = Counter.bind(add.bind(1, 1))
    assert isinstance(counter, ClassNode)
    first = counter.add.bind(10)
    second = counter.add.bind(first)
    assert ray.get(second.execute()) == 24
    assert ray.get(second.execute()) == 24, "every execution has an actor of its own"
    plus, minus = counter.both.bind()
    refs = MultiOutputNode([minus, plus]).execute()
    assert ray.get(refs) == [-24, 24], "calls of an actor are made in the order they were bound"
    assert minus.is_class_method_output and minus.output_idx == 1
    actor = Counter.remote(100)
    node = actor.add.bind(add.bind(1, 1))
    assert ray.get([node.execute(), node.execute()]) == [102, 104]
    assert node.get_method_name() == "add"


def test_options_are_kept(cluster):
    node = add.options(num_cpus=2, name="named").bind(1)
    assert node.get_options()["num_cpus"] == 2
    assert ray.get(node.execute()) == 1


def test_nodes_can_be_looked_at_and_replaced(cluster):
    leaf = add.bind(1, 1)
    root = add.bind(leaf, leaf)
    seen = []
    root.traverse_and_apply(seen.append)
    assert seen == [leaf, root]
    made = root.apply_recursive(lambda node: add.bind(*node.get_args(), b=0) if False else node)
    assert ray.get(made.execute()) == 4
    assert made.get_stable_uuid() == root.get_stable_uuid()
    root.execute(_ray_cache_refs=True)
    cached = root.get_object_refs_from_last_execute()
    assert ray.get(cached[leaf.get_stable_uuid()]) == 2
    root.clear_cache()
    with pytest.raises(ValueError, match="has to be called first"):
        root.get_object_refs_from_last_execute()


def test_a_picture(cluster, tmp_path):
    text = plot(add.bind(add.bind(1), 2), tmp_path / "graph.dot")
    assert "n0 -> n1" in text and os.path.getsize(tmp_path / "graph.dot") == len(text)
    with pytest.raises(ValueError, match="dot"):
        plot(add.bind(1), "graph.png")


def test_what_cannot_be_is_said(cluster):
    with pytest.raises(NotImplementedError, match="Compiled graphs"):
        add.bind(1).experimental_compile()
    with pytest.raises(AttributeError, match="cannot be used again"):
        Counter.bind(1).bind(2)
    with pytest.raises(AssertionError, match="context manager"):
        add.bind(InputNode()).execute(1)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = Counter.bind(1).nothing
    with pytest.raises(Exception, match="bind"):
        ray.get(add.remote(add.bind(1)))
    with pytest.raises(ValueError, match="list of nodes"):
        MultiOutputNode(3)
