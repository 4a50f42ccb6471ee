"""Which variables a TensorFlow output depends on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any


def graph_of(thing: Any) -> Any:
    """The graph of a tensor, operation or variable; None for what is eager."""
    try:
        return getattr(thing, "graph", None)
    except (AttributeError, NotImplementedError, RuntimeError):
        return None


def variables_behind(output: Any) -> list[Any]:
    """The variables of models and of variables themselves, and all that tensors depend on."""
    outputs = list(output) if isinstance(output, (list, tuple)) else [output]
    found: list[Any] = []
    nodes: list[Any] = []
    for item in outputs:
        if item is None:
            continue
        if hasattr(item, "assign"):
            found.append(item)
        elif hasattr(item, "trainable_variables"):
            found += _variables_of_model(item)
        elif graph_of(item) is not None:
            nodes.append(item)
        else:
            raise TypeError(
                f"TensorFlowVariables cannot see the variables behind {type(item).__name__}: pass "
                "the model or the list of variables (eager tensors do not know what made them)."
            )
    return [*_variables_in_graph(nodes), *found]


def _variables_of_model(model: Any) -> list[Any]:
    # Keras's weights are its variables without the state of random generators and metrics.
    is_keras = hasattr(model, "trainable_weights")
    variables = list(model.weights if is_keras else model.variables)
    if not variables and not getattr(model, "built", True):
        raise ValueError(
            f"{getattr(model, 'name', type(model).__name__)} has no weights yet: give it an input "
            "shape, or call it once, before TensorFlowVariables."
        )
    return variables


def _variables_in_graph(outputs: Iterable[Any]) -> list[Any]:
    """The global variables that tensors and operations depend on, in the order they were made."""
    graphs: list[Any] = []
    for output in outputs:
        if not any(graph_of(output) is graph for graph in graphs):
            graphs.append(graph_of(output))
    behind = _operations_behind(outputs)
    return [
        variable
        for graph in graphs
        for variable in graph.get_collection("variables")  # tf.GraphKeys.GLOBAL_VARIABLES
        if variable.op in behind
    ]


def _operations_behind(outputs: Iterable[Any]) -> set[Any]:
    """All operations that must run, or run before, for `outputs`; the graph may have cycles."""
    waiting = deque(getattr(output, "op", output) for output in outputs)
    seen = set(waiting)
    while waiting:
        operation = waiting.popleft()
        before = [tensor.op for tensor in operation.inputs]
        for other in (*before, *operation.control_inputs):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen
