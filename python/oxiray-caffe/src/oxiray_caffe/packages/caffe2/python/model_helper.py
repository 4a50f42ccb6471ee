"""A model as Caffe2 describes one: a name, parameters, and nets made of operators."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

__all__ = ["BlobReference", "ModelHelper", "Net", "Operator"]

_unnamed = itertools.count(1)


@dataclass(frozen=True)
class BlobReference:
    """The name of a blob, as an operator takes and gives it."""

    name: str

    def BlobName(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


@dataclass
class Operator:
    """A step of a net: its type, the names that it reads and writes, and its arguments."""

    type: str
    input: list[str]
    output: list[str]
    arg: dict[str, Any] = field(default_factory=dict)


class Net:
    """Operators in their order: `net.Relu("x", "y")` adds one and returns its output."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.op: list[Operator] = []

    def Name(self) -> str:
        return self.name

    def Proto(self) -> Net:
        return self

    def AddOperator(self, type: str, inputs: Any, outputs: Any, **arguments: Any) -> Any:
        """Adds an operator; the reference to its output, or those to several."""
        operator = Operator(type, _names(inputs), _names(outputs), arguments)
        self.op.append(operator)
        references = [BlobReference(name) for name in operator.output]
        return references[0] if len(references) == 1 else tuple(references)

    def __getattr__(self, type: str) -> Any:
        _refuse_to_run("net", type)
        if type.startswith("_") or not type[:1].isupper():
            raise AttributeError(f"a net has no attribute {type!r}: operators begin with a capital")

        def add(inputs: Any = (), outputs: Any = None, **arguments: Any) -> Any:
            if outputs is None:
                outputs = f"{self.name}/{type}_{len(self.op)}"
            elif isinstance(outputs, int):
                outputs = [f"{self.name}/{type}_{len(self.op)}_{n}" for n in range(outputs)]
            return self.AddOperator(type, inputs, outputs, **arguments)

        return add


class ModelHelper:
    """A name, the parameters of a model, and two nets: one makes them, one uses them."""

    def __init__(
        self,
        name: str | None = None,
        init_params: bool = True,
        arg_scope: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        self.name = name or f"model_{next(_unnamed)}"
        self.init_params = init_params
        self.arg_scope = dict(arg_scope or {})
        self.net = Net(self.name)
        self.param_init_net = Net(f"{self.name}_init")
        self.params: list[BlobReference] = []

    def Name(self) -> str:
        return self.name

    def AddParameter(self, param: Any, tags: Any = None) -> BlobReference:
        """Notes that the model has this parameter."""
        reference = BlobReference(str(param))
        if reference not in self.params:
            self.params.append(reference)
        return reference

    def GetParams(self, namescope: Any = None, top_scope: bool = False) -> list[BlobReference]:
        """The parameters."""
        return list(self.params)

    def Proto(self) -> Net:
        return self.net

    def __getattr__(self, type: str) -> Any:
        _refuse_to_run("model", type)
        if type.startswith("_") or not type[:1].isupper():
            there = ", ".join(vars(self))
            raise AttributeError(f"a model has no attribute {type!r}: it has {there}")
        return getattr(self.net, type)


def _refuse_to_run(what: str, asked: str) -> None:
    if asked.lower().startswith("run"):
        raise NotImplementedError(
            f"{what}.{asked}: this caffe2 describes nets and shares blobs; it does not run them: "
            "run the operators with numpy, or with a library that runs nets, in a task or an actor."
        )


def _names(given: Any) -> list[str]:
    several = given if isinstance(given, (list, tuple)) else [given]
    return [str(name) for name in several]
