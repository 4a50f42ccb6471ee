"""Weights of PyTorch nets, to pass between processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._named_weights import NamedWeights, Shape


class TorchVariables(NamedWeights):
    """Gets and sets the weights of a `torch.nn.Module` as numpy arrays.

    Weights are all of the module's state: its parameters, and buffers such as running means.

    Attributes:
        module: the module.
    """

    _nothing_matches = (
        "No variables in the input matched those in the network. Possible cause: the weights are "
        "of a module with other names."
    )

    def __init__(self, module: Any) -> None:
        if not callable(getattr(module, "state_dict", None)):
            raise TypeError(
                f"TorchVariables needs a torch.nn.Module, not {type(module).__name__} "
                "(for one tensor, pass the module that it is of)."
            )
        self.module = module

    @property
    def variables(self) -> dict[str, Any]:
        """The tensors by name, in the order of the flat array; they share the module's memory."""
        # Asked anew each time: moving a module to another device or dtype replaces tensors. What
        # is not a tensor is the extra state that a module may define; it is no weight.
        state = self.module.state_dict()
        return {name: value for name, value in state.items() if hasattr(value, "copy_")}

    def _shapes(self) -> dict[str, Shape]:
        return {name: tuple(tensor.shape) for name, tensor in self.variables.items()}

    def _read(self) -> dict[str, Any]:
        return {name: _to_numpy(tensor) for name, tensor in self.variables.items()}

    def _write(self, weights: Mapping[str, Any]) -> None:
        import numpy
        import torch

        tensors = self.variables
        # First all conversions and checks, then all writes: a wrong one changes nothing.
        values = {}
        for name, value in weights.items():
            # tensor() copies; from_numpy() warns of the read-only arrays of the object store.
            values[name] = torch.tensor(numpy.asarray(value))
            if values[name].shape != tensors[name].shape:
                raise ValueError(
                    f"The weights of {name!r} have the shape {tuple(values[name].shape)}, "
                    f"the network's {tuple(tensors[name].shape)}."
                )
        with torch.no_grad():
            for name, new in values.items():
                tensors[name].copy_(new)


def _to_numpy(tensor: Any) -> Any:
    import torch

    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:  # numpy has none; float32 holds all of its values
        tensor = tensor.float()
    # A copy: later training must not change what was handed out.
    return tensor.numpy().copy()
