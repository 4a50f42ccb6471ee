"""The arguments of `execute`, as nodes: all of them, or one by its place or name."""

from __future__ import annotations

import itertools
from typing import Any

from .dag_node import DAGNode, _Run


class InputNode(DAGNode):
    """What `execute` is given. Used as `with InputNode() as value:`; `value.x`, `value["x"]` and
    `value[0]` are nodes of one argument."""

    def __init__(
        self,
        *args: Any,
        input_type: Any = None,
        _other_args_to_resolve: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if args or kwargs:
            raise ValueError(
                "InputNode should not take any args or kwargs: they are those of execute()"
            )
        super().__init__((), {}, {}, _other_args_to_resolve or {})
        self.input_type = input_type
        self.context: dict[str, Any] = {}
        self._was_entered = False

    def set_context(self, key: str, val: Any) -> None:
        self.context[key] = val

    def get_result_type(self) -> Any:
        return self.input_type

    def __enter__(self) -> InputNode:
        self._was_entered = True
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> InputAttributeNode:
        if name.startswith("_") or "input_type" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return InputAttributeNode(self, name, "__getattr__", _type_of(self.input_type, name))

    def __getitem__(self, key: int | str) -> InputAttributeNode:
        if not isinstance(key, (int, str)):
            raise ValueError(
                "Please only use int index or str as first-level key to access fields of dag "
                f"input, not {key!r}"
            )
        return InputAttributeNode(self, key, "__getitem__", _type_of(self.input_type, key))

    def _copy(self, args: Any, kwargs: Any, options: Any, other: Any) -> InputNode:
        made = InputNode(input_type=self.input_type, _other_args_to_resolve=other)
        made._was_entered = self._was_entered
        return made

    def _execute(self, args: tuple[Any, ...], kwargs: dict[str, Any], run: _Run) -> Any:
        if not self._was_entered:
            raise AssertionError(
                "InputNode is a singleton instance that should be only used in context manager: "
                "'with InputNode() as value:'"
            )
        if len(run.args) == 1 and not run.kwargs:
            return run.args[0]
        return DAGInputData(*run.args, **run.kwargs)


def _type_of(input_type: Any, key: int | str) -> Any:
    return input_type.get(key) if isinstance(input_type, dict) else None


class InputAttributeNode(DAGNode):
    """One of the arguments of `execute`, or an attribute or item of the only one."""

    def __init__(
        self,
        dag_input_node: InputNode,
        key: int | str,
        accessor_method: str,
        input_type: Any = None,
    ) -> None:
        super().__init__(
            (dag_input_node, key, accessor_method), {}, {}, {"dag_input_node": dag_input_node}
        )
        self._key = key
        self._accessor = accessor_method
        self._input_type = input_type

    @property
    def key(self) -> int | str:
        return self._key

    def get_result_type(self) -> Any:
        return self._input_type

    def _copy(self, args: Any, kwargs: Any, options: Any, other: Any) -> InputAttributeNode:
        return InputAttributeNode(args[0], args[1], args[2], self._input_type)

    def _execute(self, args: tuple[Any, ...], kwargs: dict[str, Any], run: _Run) -> Any:
        given = args[0]
        if isinstance(given, DAGInputData) or self._accessor == "__getitem__":
            return given[self._key]
        return getattr(given, str(self._key))

    def _label(self) -> str:
        return repr(self._key)


class DAGInputData:
    """Several arguments of `execute`, by place and by name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._args = args
        self._kwargs = kwargs

    def __getitem__(self, key: int | str) -> Any:
        try:
            return self._args[key] if isinstance(key, int) else self._kwargs[key]
        except (IndexError, KeyError):
            known = ", ".join(map(str, itertools.chain(range(len(self._args)), self._kwargs)))
            raise ValueError(f"execute() was given no argument {key!r}: it has {known}") from None

    def __repr__(self) -> str:
        return f"DAGInputData({self._args}, {self._kwargs})"
