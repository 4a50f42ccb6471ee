"""Graphs of calls that are described first and made later: `f.bind(x).execute()`."""

from .class_node import ClassMethodNode, ClassNode
from .constants import (
    BIND_INDEX_KEY,
    COLLECTIVE_OPERATION_KEY,
    DAGNODE_TYPE_KEY,
    IS_CLASS_METHOD_OUTPUT_KEY,
    PARENT_CLASS_NODE_KEY,
    PREV_CLASS_METHOD_CALL_KEY,
)
from .dag_node import DAGNode
from .function_node import FunctionNode
from .input_node import DAGInputData, InputAttributeNode, InputNode
from .output_node import MultiOutputNode
from .vis_utils import plot

__all__ = [
    "BIND_INDEX_KEY",
    "COLLECTIVE_OPERATION_KEY",
    "DAGNODE_TYPE_KEY",
    "IS_CLASS_METHOD_OUTPUT_KEY",
    "PARENT_CLASS_NODE_KEY",
    "PREV_CLASS_METHOD_CALL_KEY",
    "ClassMethodNode",
    "ClassNode",
    "DAGInputData",
    "DAGNode",
    "FunctionNode",
    "InputAttributeNode",
    "InputNode",
    "MultiOutputNode",
    "plot",
]
