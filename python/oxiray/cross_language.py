"""Functions and actors of Java and C++: names that say that there are none here."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["cpp_actor_class", "cpp_function", "java_actor_class", "java_function"]


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name}(): workers here are Python's; there are none of Java or C++, and none are planned "
        "(docs/compatibility.md)"
    )


def java_function(class_name: str, function_name: str) -> NoReturn:
    _refuse("java_function")


def java_actor_class(class_name: str) -> NoReturn:
    _refuse("java_actor_class")


def cpp_function(function_name: str) -> NoReturn:
    _refuse("cpp_function")


def cpp_actor_class(create_function_name: str, class_name: str) -> NoReturn:
    _refuse("cpp_actor_class")


class Language:
    """The languages of workers."""

    PYTHON: Any = 0
    JAVA: Any = 1
    CPP: Any = 2
