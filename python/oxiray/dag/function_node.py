"""The node of a remote function: what `f.bind(...)` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._remote_function import RemoteFunction
from .dag_node import DAGNode, _Run


class FunctionNode(DAGNode):
    """A call of a remote function."""

    def __init__(
        self,
        func_body: Callable[..., Any],
        func_args: tuple[Any, ...],
        func_kwargs: dict[str, Any],
        func_options: dict[str, Any],
        other_args_to_resolve: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(func_args, func_kwargs, func_options, other_args_to_resolve or {})
        self._body = func_body
        self._remote: RemoteFunction[..., Any] = RemoteFunction(func_body, self._bound_options)

    def _copy(self, args: Any, kwargs: Any, options: Any, other: Any) -> FunctionNode:
        return FunctionNode(self._body, args, kwargs, options, other)

    def _execute(self, args: tuple[Any, ...], kwargs: dict[str, Any], run: _Run) -> Any:
        return self._remote.remote(*args, **kwargs)

    def get_import_path(self) -> str:
        return f"{self._body.__module__}.{self._body.__qualname__}"

    def _label(self) -> str:
        return getattr(self._body, "__name__", "?")
