"""Weights of TensorFlow nets, to pass between processes.

Graphs and sessions (`tensorflow.compat.v1`, or TensorFlow 1) and eager variables (Keras models,
`tf.Module`) have the same methods. In a graph, the operations that assign are made once, here:
`variable.assign()` at every step would make the graph grow for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._named_weights import NamedWeights, Shape, unique
from ._tf_graph import graph_of, variables_behind

_NO_SESSION = (
    "The session is not set. Set the session either by passing it into the TensorFlowVariables "
    "constructor or by calling set_session(sess)."
)
_TWO_NETWORKS = (
    "No variables in the input matched those in the network. Possible cause: Two networks were "
    "defined in the same TensorFlow graph. To fix this, place each network definition in its own "
    "tf.Graph."
)


class TensorFlowVariables(NamedWeights):
    """Gets and sets the weights of a TensorFlow net.

    Variables are known by name. Two nets in one graph have different names, so weights of one fit
    the other only by `set_flat`; in a graph each, or in a process each, the names are the same.

    Attributes:
        sess: the session to read and write with; eager variables need none.
        variables: the variables by name, in the order of the flat array.
        placeholders: what new weights are fed to, by name; empty for eager variables.
        assignment_nodes: what assigns them, by name; empty for eager variables.
    """

    _nothing_matches = _TWO_NETWORKS

    def __init__(
        self, output: Any, sess: Any = None, input_variables: Sequence[Any] | None = None
    ) -> None:
        """Finds the variables, and adds to their graph what it takes to assign them.

        Args:
            output: a tensor or operation, such as the loss: the variables are those it depends on;
                or a Keras model, layer, `tf.Module` or variable; or a list of such.
            sess: the session; may also be set later.
            input_variables: more variables, beside those found.
        """
        if output is None and not input_variables:
            raise TypeError(
                "TensorFlowVariables needs a tensor, an operation, a model or its variables, not "
                "NoneType."
            )
        self.sess = sess
        self.variables: dict[str, Any] = {}
        self.placeholders: dict[str, Any] = {}
        self.assignment_nodes: dict[str, Any] = {}
        found = [*variables_behind(output), *(input_variables or ())]
        # An eager variable may come twice; its hash is its identity only in TensorFlow 1.
        for variable in {id(variable): variable for variable in found}.values():
            if graph_of(variable) is not None:
                # The node's name is unique in its graph.
                self.variables[variable.op.name] = variable
            else:
                self.variables[unique(_eager_name(variable), self.variables)] = variable
        self._make_assignments()

    def _make_assignments(self) -> None:
        for name, variable in self.variables.items():
            graph = graph_of(variable)
            if graph is None:
                continue
            import tensorflow.compat.v1 as tf

            # Outside of the scopes and control dependencies that happen to be open here.
            with graph.as_default(), graph.name_scope(None), graph.control_dependencies(None):
                dtype = variable.dtype.base_dtype
                holder = tf.placeholder(dtype, variable.get_shape(), name="Placeholder_" + name)
                self.placeholders[name] = holder
                self.assignment_nodes[name] = variable.assign(holder)

    def set_session(self, sess: Any) -> None:
        """Uses another session from now on."""
        self.sess = sess

    def _run(self, fetches: Any, feeds: dict[Any, Any] | None = None) -> Any:
        if self.sess is None:
            raise AssertionError(_NO_SESSION)
        return self.sess.run(fetches, feed_dict=feeds)

    def _shapes(self) -> dict[str, Shape]:
        return {name: _shape(name, variable) for name, variable in self.variables.items()}

    def _read(self) -> dict[str, Any]:
        import numpy

        # One run for all: the weights are those of one moment.
        graph = {name: self.variables[name] for name in self.placeholders}
        values = self._run(graph) if graph else {}
        for name, variable in self.variables.items():
            if name not in graph:
                values[name] = variable.numpy()
        return {name: numpy.asarray(values[name]) for name in self.variables}

    def _write(self, weights: Mapping[str, Any]) -> None:
        feeds, nodes = {}, []
        for name, value in weights.items():
            if name in self.placeholders:
                feeds[self.placeholders[name]] = _unchanging(value)
                # The operation, not its tensor: that would bring all weights back.
                nodes.append(self.assignment_nodes[name].op)
            else:
                self.variables[name].assign(value)
        if nodes:
            self._run(nodes, feeds)


def _eager_name(variable: Any) -> str:
    """`dense/kernel`: Keras's path where there is one, else the name without its output."""
    path = getattr(variable, "path", None)
    return str(path) if path else str(variable.name).partition(":")[0]


def _shape(name: str, variable: Any) -> Shape:
    dimensions = getattr(variable.shape, "dims", variable.shape)  # Keras has plain tuples
    if dimensions is None or None in map(_size, dimensions):
        raise ValueError(f"The variable {name!r} has no fixed shape.")
    return tuple(map(_size, dimensions))


def _size(dimension: Any) -> Any:
    return getattr(dimension, "value", dimension)


def _unchanging(value: Any) -> Any:
    """`value`, copied if anyone may write to it.

    A variable may keep the memory that it was fed, and would change with the caller's array. What
    comes out of the object store is read-only and needs no copy.
    """
    import numpy

    array = numpy.asarray(value)
    return array.copy() if array.flags.writeable else array
