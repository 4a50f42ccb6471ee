"""A node of a graph of calls that have not been made yet: what all kinds of them have."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, NoReturn


class DAGNode:
    """A call that is bound to its arguments, of which some are nodes too; `execute` makes it."""

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: dict[str, Any],
        other_args_to_resolve: dict[str, Any],
    ) -> None:
        self._bound_args = tuple(args or ())
        self._bound_kwargs = dict(kwargs or {})
        self._bound_options = dict(options or {})
        self._bound_other_args_to_resolve = dict(other_args_to_resolve or {})
        self._stable_uuid = uuid.uuid4().hex
        self._type_hint: Any = None
        self._last_results: dict[str, Any] | None = None
        self.is_adag_output_node = False

    def get_args(self) -> tuple[Any, ...]:
        return self._bound_args

    def get_kwargs(self) -> dict[str, Any]:
        return dict(self._bound_kwargs)

    def get_options(self) -> dict[str, Any]:
        return dict(self._bound_options)

    def get_other_args_to_resolve(self) -> dict[str, Any]:
        return dict(self._bound_other_args_to_resolve)

    def get_stable_uuid(self) -> str:
        """What tells this node from every other; copies of it have the same."""
        return self._stable_uuid

    @property
    def type_hint(self) -> Any:
        return self._type_hint

    def with_type_hint(self, type_hint: Any) -> DAGNode:
        self._type_hint = type_hint
        return self

    def execute(self, *args: Any, _ray_cache_refs: bool = False, **kwargs: Any) -> Any:
        """Makes all the calls that this one needs, and this one; the arguments are `InputNode`'s.

        A node that several others need is executed once. Returns what `remote` would.
        """
        from .input_node import InputNode

        given = [node for node in self._all_nodes() if isinstance(node, InputNode)]
        if len(given) > 1:
            raise AssertionError(
                "Each DAG should only have one unique InputNode: use one, in one 'with'"
            )
        run = _Run(args, kwargs)
        result = run(self)
        self._last_results = run.refs() if _ray_cache_refs else None
        return result

    def get_object_refs_from_last_execute(self) -> dict[str, Any]:
        """What the nodes returned when `execute(_ray_cache_refs=True)` ran, by their ids."""
        if self._last_results is None:
            raise ValueError("execute(_ray_cache_refs=True) has to be called first")
        return self._last_results

    def clear_cache(self) -> None:
        """Forgets what the last execution returned."""
        self._last_results = None

    def apply_recursive(self, fn: Callable[[DAGNode], Any]) -> Any:
        """`fn` of this node, after each node that it needs was replaced by `fn` of that; a node
        that several others need is given to it once."""
        done: dict[str, Any] = {}

        def apply(node: DAGNode) -> Any:
            if node._stable_uuid not in done:
                done[node._stable_uuid] = fn(node._replaced(apply))
            return done[node._stable_uuid]

        return apply(self)

    def traverse_and_apply(self, fn: Callable[[DAGNode], Any]) -> None:
        """Calls `fn` with this node and with every other that it needs, each once."""
        for node in self._all_nodes():
            fn(node)

    def apply_functional(
        self,
        source_input_list: Any,
        predicate_fn: Callable[[Any], bool],
        apply_fn: Callable[[Any], Any],
    ) -> Any:
        """`source_input_list` with what meets a condition, at any depth of it, replaced."""
        return replace_in(source_input_list, predicate_fn, apply_fn)

    def experimental_compile(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "Compiled graphs are not there, and not planned (docs/compatibility.md): execute() "
            "makes the calls one by one"
        )

    def _inputs(self) -> list[DAGNode]:
        """The nodes that this one needs directly."""
        found: list[DAGNode] = []
        everything = (self._bound_args, self._bound_kwargs, self._bound_other_args_to_resolve)
        replace_in(everything, _is_node, found.append)
        return found

    def _all_nodes(self) -> list[DAGNode]:
        """This node and all that it needs, inputs first, each once."""
        seen: dict[str, DAGNode] = {}
        begun: set[str] = set()

        def visit(node: DAGNode) -> None:
            if node._stable_uuid in begun:
                return
            begun.add(node._stable_uuid)
            for needed in node._inputs():
                visit(needed)
            seen[node._stable_uuid] = node

        visit(self)
        return list(seen.values())

    def _replaced(self, fn: Callable[[DAGNode], Any]) -> DAGNode:
        """A copy of this node, with the nodes that it needs replaced."""
        made = self._copy(
            replace_in(self._bound_args, _is_node, fn),
            replace_in(self._bound_kwargs, _is_node, fn),
            self._bound_options,
            replace_in(self._bound_other_args_to_resolve, _is_node, fn),
        )
        made._stable_uuid, made._type_hint = self._stable_uuid, self._type_hint
        return made

    def _copy(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: dict[str, Any],
        other: dict[str, Any],
    ) -> DAGNode:
        raise NotImplementedError

    def _execute(self, args: tuple[Any, ...], kwargs: dict[str, Any], run: _Run) -> Any:
        """Makes the call itself; its arguments are resolved."""
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise ValueError(
            "A node of a graph cannot be pickled: pass it to bind(), and not to remote() or put()"
        )

    def __repr__(self) -> str:
        return f"<oxiray.dag.{type(self).__name__} {self._label()}>"

    def _label(self) -> str:
        return ""


class _Run:
    """One execution of a graph: what its nodes returned."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs
        self._results: dict[str, Any] = {}

    def __call__(self, node: DAGNode) -> Any:
        for needed in node._all_nodes():
            key = needed._stable_uuid
            if key not in self._results:
                args = self.resolved(needed._bound_args)
                kwargs = self.resolved(needed._bound_kwargs)
                self._results[key] = needed._execute(args, kwargs, self)
        return self._results[node._stable_uuid]

    def resolved(self, value: Any) -> Any:
        return replace_in(value, _is_node, lambda node: self._results[node._stable_uuid])

    def refs(self) -> dict[str, Any]:
        return dict(self._results)


def _is_node(value: Any) -> bool:
    return isinstance(value, DAGNode)


def replace_in(
    value: Any, is_meant: Callable[[Any], bool], replacement: Callable[[Any], Any]
) -> Any:
    """`value` with what is meant replaced, in lists, tuples, dicts and sets at any depth."""
    if is_meant(value):
        return replacement(value)
    kind = type(value)
    if kind in (list, set, frozenset):
        return kind(replace_in(one, is_meant, replacement) for one in value)
    if isinstance(value, tuple):
        parts = [replace_in(one, is_meant, replacement) for one in value]
        return kind(parts) if kind is tuple else kind(*parts)
    if kind is dict:
        return {key: replace_in(one, is_meant, replacement) for key, one in value.items()}
    return value
