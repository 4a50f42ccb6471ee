"""The nodes of actors and of their methods: what `A.bind(...)` and `node.method.bind(...)` give."""

from __future__ import annotations

from typing import Any

from .._actor import ActorClass, ActorHandle, ActorMethod
from .constants import (
    IS_CLASS_METHOD_OUTPUT_KEY,
    PARENT_CLASS_NODE_KEY,
    PREV_CLASS_METHOD_CALL_KEY,
)
from .dag_node import DAGNode, _Run


class ClassNode(DAGNode):
    """An actor that is started when the graph is executed: every time another."""

    def __init__(
        self,
        cls: type,
        cls_args: tuple[Any, ...],
        cls_kwargs: dict[str, Any],
        cls_options: dict[str, Any],
        other_args_to_resolve: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(cls_args, cls_kwargs, cls_options, other_args_to_resolve or {})
        self._cls = cls
        self._remote: ActorClass[Any] = ActorClass(cls, self._bound_options)
        # Calls of an actor run in the order in which they were bound.
        self._last_call: ClassMethodNode | None = None

    def _copy(self, args: Any, kwargs: Any, options: Any, other: Any) -> ClassNode:
        return ClassNode(self._cls, args, kwargs, options, other)

    def _execute(self, args: tuple[Any, ...], kwargs: dict[str, Any], run: _Run) -> Any:
        return self._remote.remote(*args, **kwargs)

    def __getattr__(self, name: str) -> _UnboundMethod:
        if name.startswith("_") or "_cls" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name == "bind":
            raise AttributeError(f".bind() cannot be used again on {self!r}")
        if not callable(getattr(self._cls, name, None)):
            raise AttributeError(
                f"{self._cls.__name__!r} has no attribute {name!r}: no such method"
            )
        return _UnboundMethod(self, name, {})

    def _label(self) -> str:
        return self._cls.__name__


class _UnboundMethod:
    """A method of a `ClassNode`, before it is bound."""

    def __init__(self, actor: ClassNode, name: str, options: dict[str, Any]) -> None:
        self._actor, self._name, self._options = actor, name, options

    def options(self, **options: Any) -> _UnboundMethod:
        return _UnboundMethod(self._actor, self._name, {**self._options, **options})

    def bind(self, *args: Any, **kwargs: Any) -> ClassMethodNode | tuple[ClassMethodNode, ...]:
        actor = self._actor
        other = {PARENT_CLASS_NODE_KEY: actor, PREV_CLASS_METHOD_CALL_KEY: actor._last_call}
        node = ClassMethodNode(self._name, args, kwargs, self._options, other)
        actor._last_call = node
        own = getattr(getattr(actor._cls, self._name), "__ray_method_options__", {})
        return outputs(node, self._options.get("num_returns", own.get("num_returns")))


class ClassMethodNode(DAGNode):
    """A call of an actor: of one in the graph, or of one that there is."""

    def __init__(
        self,
        method_name: str,
        method_args: tuple[Any, ...],
        method_kwargs: dict[str, Any],
        method_options: dict[str, Any],
        other_args_to_resolve: dict[str, Any],
    ) -> None:
        super().__init__(method_args, method_kwargs, method_options, other_args_to_resolve)
        self._method_name = method_name
        self._actor = other_args_to_resolve[PARENT_CLASS_NODE_KEY]

    def get_method_name(self) -> str:
        return self._method_name

    @property
    def num_returns(self) -> int:
        returns = self._bound_options.get("num_returns")
        return 1 if returns is None else int(returns)

    @property
    def is_class_method_call(self) -> bool:
        return IS_CLASS_METHOD_OUTPUT_KEY not in self._bound_other_args_to_resolve

    @property
    def is_class_method_output(self) -> bool:
        """Whether it is one of several outputs of a call."""
        return not self.is_class_method_call

    @property
    def class_method_call(self) -> ClassMethodNode | None:
        """Of a node that is one of several outputs of a call: that call."""
        return self._bound_args[0] if self.is_class_method_output else None

    @property
    def output_idx(self) -> int | None:
        """Which of the outputs it is."""
        return self._bound_args[1] if self.is_class_method_output else None

    def _copy(self, args: Any, kwargs: Any, options: Any, other: Any) -> ClassMethodNode:
        return ClassMethodNode(self._method_name, args, kwargs, options, other)

    def _execute(self, args: tuple[Any, ...], kwargs: dict[str, Any], run: _Run) -> Any:
        if self.is_class_method_output:
            return args[0][args[1]]
        actor: ActorHandle[Any] | ActorMethod = run.resolved(self._actor)
        bound = isinstance(actor, ActorMethod)
        method = actor if bound else getattr(actor, self._method_name)
        if self._bound_options:
            method = method.options(**self._bound_options)
        return method.remote(*args, **kwargs)

    def _label(self) -> str:
        return self._method_name


def bind_method(
    method: ActorMethod, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ClassMethodNode | tuple[ClassMethodNode, ...]:
    """The node of a call of an actor that there is."""
    node = ClassMethodNode(name, args, kwargs, {}, {PARENT_CLASS_NODE_KEY: method})
    return outputs(node, method._num_returns)


def outputs(
    call: ClassMethodNode, num_returns: int | str | None
) -> ClassMethodNode | tuple[ClassMethodNode, ...]:
    """What `bind` returns: the node of the call, or one for each of its several outputs."""
    if not isinstance(num_returns, int) or num_returns < 2:
        return call
    other = {PARENT_CLASS_NODE_KEY: call._actor, IS_CLASS_METHOD_OUTPUT_KEY: True}
    name = call.get_method_name()
    return tuple(ClassMethodNode(name, (call, at), {}, {}, other) for at in range(num_returns))
