"""Several results of one execution."""

from __future__ import annotations

from typing import Any

from .dag_node import DAGNode, _Run


class MultiOutputNode(DAGNode):
    """Its result is the list of the results of other nodes."""

    def __init__(
        self,
        args: list[Any] | tuple[Any, ...],
        other_args_to_resolve: dict[str, Any] | None = None,
    ) -> None:
        if isinstance(args, tuple):
            args = list(args)
        if not isinstance(args, list):
            raise ValueError(f"MultiOutputNode takes a list of nodes, not {args!r}")
        super().__init__((args,), {}, {}, other_args_to_resolve or {})

    def _copy(self, args: Any, kwargs: Any, options: Any, other: Any) -> MultiOutputNode:
        return MultiOutputNode(args[0], other)

    def _execute(self, args: tuple[Any, ...], kwargs: dict[str, Any], run: _Run) -> Any:
        return args[0]
