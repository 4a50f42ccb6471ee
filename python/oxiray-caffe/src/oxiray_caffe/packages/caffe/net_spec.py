"""Nets as Python expressions: `layers.Convolution(data, num_output=96)` is a layer and its output.

A layer knows its inputs, so that a net is whatever its last outputs were made of. Layers and
outputs that got no name are called after their type, with a number: `Convolution1`.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from .proto import caffe_pb2

# Layers by type, and where their own parameters are; "" where a type has none.
_OWN_PARAMETERS = {
    "AbsVal": "", "Accuracy": "accuracy_param", "ArgMax": "argmax_param",
    "BNLL": "", "BatchNorm": "batch_norm_param", "BatchReindex": "", "Bias": "bias_param",
    "Clip": "clip_param", "Concat": "concat_param", "ContrastiveLoss": "contrastive_loss_param",
    "Convolution": "convolution_param", "Crop": "crop_param", "Data": "data_param",
    "Deconvolution": "convolution_param", "Dropout": "dropout_param",
    "DummyData": "dummy_data_param", "ELU": "elu_param", "Eltwise": "eltwise_param",
    "Embed": "embed_param", "EuclideanLoss": "", "Exp": "exp_param", "Filter": "",
    "Flatten": "flatten_param", "HDF5Data": "hdf5_data_param", "HDF5Output": "hdf5_output_param",
    "HingeLoss": "hinge_loss_param", "Im2col": "convolution_param",
    "ImageData": "image_data_param", "InfogainLoss": "infogain_loss_param",
    "InnerProduct": "inner_product_param", "Input": "input_param", "LRN": "lrn_param",
    "LSTM": "recurrent_param", "LSTMUnit": "", "Log": "log_param", "MVN": "mvn_param",
    "MemoryData": "memory_data_param", "MultinomialLogisticLoss": "", "PReLU": "prelu_param",
    "Parameter": "parameter_param", "Pooling": "pooling_param", "Power": "power_param",
    "Python": "python_param", "RNN": "recurrent_param", "ReLU": "relu_param",
    "Reduction": "reduction_param", "Reshape": "reshape_param", "SPP": "spp_param",
    "Scale": "scale_param", "Sigmoid": "sigmoid_param", "SigmoidCrossEntropyLoss": "",
    "Silence": "", "Slice": "slice_param", "Softmax": "softmax_param",
    "SoftmaxWithLoss": "softmax_param", "Split": "", "Swish": "swish_param",
    "TanH": "tanh_param", "Threshold": "threshold_param", "Tile": "tile_param",
    "WindowData": "window_data_param",
}  # fmt: skip

# How the messages of parameters are called: `PoolingParameter`.
_PARAMETER = "Parameter"


class Top:
    """One output of a layer."""

    def __init__(self, fn: Function, n: int) -> None:
        self.fn = fn
        self.n = n

    def to_proto(self) -> Any:
        """The net that makes this output."""
        return to_proto(self)


class Function:
    """A layer: its type, its inputs, and what was said of it."""

    def __init__(self, type_name: str, inputs: Iterable[Any], params: Mapping[str, Any]) -> None:
        self.type_name = type_name
        self.inputs: tuple[Top, ...] = tuple(inputs)
        for place, given in enumerate(self.inputs):
            if not isinstance(given, Top):
                raise TypeError(
                    f"{type_name}: input {place} must be the output of a layer, not "
                    f"{type(given).__name__}" + _unpack_hint(given)
                )
        self.params = dict(params)
        self.ntop: int = self.params.pop("ntop", 1)
        self.in_place: bool = self.params.pop("in_place", False)
        if not isinstance(self.ntop, int) or self.ntop < 0:
            raise ValueError(f"{type_name}: ntop must be a number of outputs, not {self.ntop!r}")
        if self.in_place and len(self.inputs) != self.ntop:
            raise ValueError(
                f"{type_name}: in_place writes each output over an input, but there are "
                f"{len(self.inputs)} inputs and {self.ntop} outputs"
            )
        self.tops = tuple(Top(self, n) for n in range(self.ntop))
        self.message()  # a parameter that there is not is told where it was written

    def message(self) -> Any:
        """The layer with its type and parameters, without name, inputs and outputs."""
        layer = caffe_pb2.LayerParameter(type=self.type_name)
        own = _OWN_PARAMETERS[self.type_name]
        for name, value in self.params.items():
            if own and name in _fields(getattr(layer, own)):
                _assign(getattr(layer, own), name, value, f"{self.type_name}: {name}")
            elif name in _fields(layer) and name not in ("type", "bottom", "top"):
                _assign(layer, name, value, f"{self.type_name}: {name}")
            else:
                known = [*(_fields(getattr(layer, own)) if own else []), "name", "param", "ntop"]
                raise ValueError(
                    f"{self.type_name} has no parameter {name!r}{_nearest(name, known)}: it has "
                    + ", ".join(known)
                )
        return layer


class _Layers:
    """`layers`: a function for each type of layer."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in _OWN_PARAMETERS:
            known = sorted(_OWN_PARAMETERS)
            raise AttributeError(
                f"Caffe has no layer {name!r}{_nearest(name, known)}: it has {', '.join(known)}"
            )

        def layer(*inputs: Any, **parameters: Any) -> Any:
            fn = Function(name, inputs, parameters)
            if fn.ntop == 0:
                return fn
            return fn.tops[0] if fn.ntop == 1 else fn.tops

        layer.__name__ = name
        return layer

    def __dir__(self) -> list[str]:
        return sorted(_OWN_PARAMETERS)


class _Parameters:
    """`params`: the choices of parameters, as `params.Pooling.MAX`."""

    def __getattr__(self, name: str) -> Any:
        message = getattr(caffe_pb2, f"{name}{_PARAMETER}", None)
        if name.startswith("__") or message is None:
            messages = [each for each in dir(caffe_pb2) if each.endswith(_PARAMETER)]
            known = sorted(each.removesuffix(_PARAMETER) for each in messages)
            raise AttributeError(
                f"Caffe has no parameters called {name!r}{_nearest(name, known)}: there are those "
                f"of {', '.join(known)}"
            )
        return _Choices(name, message)


class _Choices:
    def __init__(self, name: str, message: Any) -> None:
        self._name = name
        self._message = message

    def __getattr__(self, choice: str) -> int:
        values = self._message.DESCRIPTOR.enum_values_by_name
        if choice not in values:
            there = ", ".join(values) or "none"
            raise AttributeError(f"params.{self._name} has no choice {choice!r}: it has {there}")
        return int(values[choice].number)


layers = _Layers()
params = _Parameters()


class NetSpec:
    """A net whose outputs have names: `n.data = L.Input(); n.fc = L.InnerProduct(n.data)`."""

    def __init__(self) -> None:
        object.__setattr__(self, "tops", {})

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, (Top, Function)):
            raise TypeError(f"{name} must be the output of a layer, not {type(value).__name__}")
        self.tops[name] = value

    def __getattr__(self, name: str) -> Any:
        try:
            return self.tops[name]
        except KeyError:
            known = ", ".join(self.tops) or "none"
            raise AttributeError(f"the net has no output {name!r}: it has {known}") from None

    __setitem__ = __setattr__
    __getitem__ = __getattr__

    def __delattr__(self, name: str) -> None:
        self[name]  # which says it if there is none
        del self.tops[name]

    __delitem__ = __delattr__

    def keys(self) -> list[str]:
        """The names of all outputs."""
        return list(self.tops)

    def to_proto(self) -> Any:
        """The net as a `NetParameter`."""
        return _Writer({top: name for name, top in self.tops.items()}).net(self.tops.values())


def to_proto(*tops: Any) -> Any:
    """The net that makes these outputs, as a `NetParameter`."""
    return _Writer({}).net(tops)


class _Writer:
    """Writes layers in an order in which each comes after its inputs."""

    def __init__(self, names: dict[Any, str]) -> None:
        self._names = names
        self._counts: Counter[str] = Counter()
        self._written: dict[Function, Any] = {}

    def net(self, outputs: Iterable[Any]) -> Any:
        for output in outputs:
            self._write(output.fn if isinstance(output, Top) else output)
        return caffe_pb2.NetParameter(layer=self._written.values())

    def _write(self, last: Function) -> None:
        # Not by recursion: nets are deeper than Python's stack.
        path = [last]
        while path:
            fn = path[-1]
            missing = [top.fn for top in fn.inputs if top.fn not in self._written]
            if fn in self._written:
                path.pop()
            elif missing:
                path.append(missing[0])
            else:
                self._written[path.pop()] = self._layer(fn)

    def _layer(self, fn: Function) -> Any:
        layer = fn.message()
        layer.bottom.extend(self._written[top.fn].top[top.n] for top in fn.inputs)
        if fn.in_place:
            layer.top.extend(layer.bottom)
        else:
            layer.top.extend(self._top_name(top) for top in fn.tops)
        if not layer.name:
            layer.name = self._layer_name(fn)
        return layer

    def _top_name(self, top: Top) -> str:
        if top not in self._names:
            self._counts[top.fn.type_name] += 1
            self._names[top] = f"{top.fn.type_name}{self._counts[top.fn.type_name]}"
        return self._names[top]

    def _layer_name(self, fn: Function) -> str:
        named = next((self._names[top] for top in (*fn.tops, fn) if top in self._names), None)
        if named is None:
            self._counts[fn.type_name] += 1
            named = f"{fn.type_name}{self._counts[fn.type_name]}"
        return named


def _assign(message: Any, name: str, value: Any, what: str) -> None:
    """Sets a field from Python: dictionaries are messages, sequences several values."""
    field = message.DESCRIPTOR.fields_by_name[name]
    try:
        if not _is_repeated(field):
            if field.message_type is None:
                setattr(message, name, value)
            else:
                _fill(getattr(message, name), value, what)
            return
        several = value if isinstance(value, (list, tuple)) else [value]
        for item in several:
            if field.message_type is None:
                getattr(message, name).append(item)
            else:
                _fill(getattr(message, name).add(), item, what)
    except (TypeError, ValueError) as error:
        if str(error).startswith(what):
            raise
        raise type(error)(f"{what}: {error}") from None


def _fill(message: Any, value: Any, what: str) -> None:
    if isinstance(value, type(message)):
        message.CopyFrom(value)
        return
    if not isinstance(value, Mapping):
        raise TypeError(f"{what} must be a dictionary, not {type(value).__name__}")
    for name, part in value.items():
        if name not in _fields(message):
            known = _fields(message)
            raise ValueError(
                f"{what} has no part {name!r}{_nearest(name, known)}: it has {', '.join(known)}"
            )
        _assign(message, name, part, f"{what}.{name}")


def _is_repeated(field: Any) -> bool:
    # Newer versions of protobuf have the one, older ones the other.
    known = getattr(field, "is_repeated", None)
    return bool(known) if known is not None else field.label == field.LABEL_REPEATED


def _fields(message: Any) -> list[str]:
    return list(message.DESCRIPTOR.fields_by_name)


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _unpack_hint(given: Any) -> str:
    return (
        ": a layer with several outputs gives one for each, take them apart"
        if isinstance(given, tuple)
        else ""
    )
