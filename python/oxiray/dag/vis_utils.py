"""A graph in the language of Graphviz."""

from __future__ import annotations

from .dag_node import DAGNode


def plot(dag: DAGNode, to_file: str | None = None) -> str:
    """The graph as Graphviz' text, also written to `to_file`, which ends with ".dot"."""
    if to_file is not None and not str(to_file).endswith(".dot"):
        raise ValueError(
            f"plot(to_file={to_file!r}) must end with '.dot': the program `dot` of Graphviz makes "
            "an image of it"
        )
    nodes = dag._all_nodes()
    numbers = {node.get_stable_uuid(): number for number, node in enumerate(nodes)}
    lines = ["digraph {", "  rankdir=LR"]
    for node in nodes:
        number = numbers[node.get_stable_uuid()]
        label = f"{type(node).__name__} {node._label()}".strip().replace('"', "'")
        lines.append(f'  n{number} [label="{label}"]')
        for needed in node._inputs():
            lines.append(f"  n{numbers[needed.get_stable_uuid()]} -> n{number}")
    text = "\n".join([*lines, "}", ""])
    if to_file is not None:
        with open(to_file, "w") as file:
            file.write(text)
    return text
