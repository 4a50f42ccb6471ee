"""A net's weights as a dict of numpy arrays or as one flat array, whatever library the net is of.

What goes between processes are these arrays, not the net: each process builds its own once.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from .._notes import add_note

Shape = tuple[int, ...]


class NamedWeights(ABC):
    """The four ways to get and set weights; a library says how to read and write arrays."""

    # What is said when no name given to set_weights() is the net's.
    _nothing_matches = "No variables in the input matched those in the network."

    @abstractmethod
    def _shapes(self) -> dict[str, Shape]:
        """The shape of every variable, in the order of the flat array."""

    @abstractmethod
    def _read(self) -> dict[str, Any]:
        """The values of all variables, as arrays that later training does not change."""

    @abstractmethod
    def _write(self, weights: Mapping[str, Any]) -> None:
        """Sets the named variables, which all exist; keeps none of the arrays that are writable."""

    def get_flat_size(self) -> int:
        """The number of weights: the length of the flat array."""
        return sum(map(math.prod, self._shapes().values()))

    def get_flat(self) -> Any:
        """All weights as one array of one dimension, variable after variable."""
        import numpy

        arrays = [numpy.ravel(array) for array in self._read().values()]
        return numpy.concatenate(arrays) if arrays else numpy.empty(0)

    def set_flat(self, new_weights: Any) -> None:
        """Sets all weights from an array as get_flat() returns it."""
        import numpy

        flat = numpy.ravel(new_weights)
        size = self.get_flat_size()
        if len(flat) != size:
            error = AssertionError("Passed weight does not have the correct shape.")
            add_note(error, f"It has {len(flat)} elements, the network has {size}.")
            raise error
        weights, at = {}, 0
        for name, shape in self._shapes().items():
            count = math.prod(shape)
            weights[name] = flat[at : at + count].reshape(shape)
            at += count
        self._write(weights)

    def get_weights(self) -> dict[str, Any]:
        """The weights by the names of their variables."""
        return self._read()

    def set_weights(self, new_weights: Mapping[str, Any]) -> None:
        """Sets the variables that are named, all or some.

        Names that no variable has are left out with a warning; if no name fits, it raises.
        """
        shapes = self._shapes()
        known = {name: value for name, value in new_weights.items() if name in shapes}
        unknown = [name for name in new_weights if name not in shapes]
        if not known:
            error = AssertionError(self._nothing_matches)
            add_note(error, f"Given: {_listed(unknown)}. In the network: {_listed(shapes)}.")
            raise error
        if unknown:
            warnings.warn(
                f"set_weights() left out {_listed(unknown)}: the network has no such variables, "
                f"but {_listed(shapes)}.",
                stacklevel=2,
            )
        self._write(known)


def unique(name: str, taken: Mapping[str, Any]) -> str:
    """`name`, or with a number after it if that is taken, as TensorFlow numbers its variables."""
    number, candidate = 0, name
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return (", ".join(map(repr, names[:8])) or "none") + more
