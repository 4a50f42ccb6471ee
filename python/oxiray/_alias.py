"""What the distribution `ray` is made of: a module that forwards, and finds its modules."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import pkgutil
import sys
import types
from collections.abc import Sequence
from typing import Any

import oxiray

from ._version import ray_version

_PREFIX = "ray."


def refuse_real_ray(file: str) -> None:
    """Both write into the same `ray/`; half of each would be a riddle to debug."""
    package = os.path.dirname(os.path.abspath(file))
    site = os.path.dirname(package)
    found = [name for name in os.listdir(package) if name.startswith("_raylet.")]
    for entry in os.listdir(site):
        metadata = entry.startswith("ray-") and entry.endswith((".dist-info", ".egg-info"))
        if metadata and "+oxiray" not in entry:
            found.append(entry)
    if found:
        raise ImportError(
            f"Both Ray and Oxiray's alias of it are installed in {site} ({', '.join(found)}). Run "
            f"'pip uninstall ray' until there is none, remove {package}, and install the one you "
            "want."
        )


def become_alias(name: str) -> None:
    """Lets the module that is being imported forward to oxiray. It stays the same module: whoever
    imports it lazily has it already."""
    module = sys.modules[name]
    for own in [key for key in vars(module) if not key.startswith("__")]:
        del module.__dict__[own]
    module.__path__ = pkgutil.extend_path(module.__path__, name)
    module.__dict__["__version__"] = ray_version
    module.__dict__["__commit__"] = f"oxiray-{oxiray.__version__}"
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
    module.__class__ = _Alias


class _Loader:
    """Loads `ray.x` by handing out `oxiray.x`."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = importlib.import_module("oxiray." + spec.name.removeprefix(_PREFIX))
        # What it has imported of its own is there under both names. Else the import system would
        # load it again, and put the module where the package has a function of that name.
        within = module.__name__ + "."
        for name in [name for name in sys.modules if name.startswith(within)]:
            alias = _PREFIX + name.removeprefix("oxiray.")
            sys.modules.setdefault(alias, sys.modules[name])
        # The import system writes the alias's spec into the module; exec_module puts it back.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        alias = module.__spec__
        if alias is not None and isinstance(alias.loader, _Loader):
            module.__spec__ = alias.loader_state


class _Finder:
    """Finds `ray.x` wherever there is an `oxiray.x`; anything else is for other finders."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith(_PREFIX):
            return None
        try:
            real = importlib.util.find_spec("oxiray." + name.removeprefix(_PREFIX))
        except ModuleNotFoundError:  # not even what it would be in
            return None
        if real is None:
            return None
        is_package = real.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(name, _Loader(), is_package=is_package)  # type: ignore[arg-type]


# What names were before somebody replaced them by way of the alias.
_replaced: dict[str, Any] = {}


class _Alias(types.ModuleType):
    """The module `ray`: dunder names are its own, every other is oxiray's."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name != "__all__":
            raise AttributeError(f"module 'ray' has no attribute {name!r}")
        try:
            return getattr(oxiray, name)
        except AttributeError as error:
            text = str(error).replace("'oxiray'", "'ray'", 1)
            raise AttributeError(text, name=name, obj=self) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
            return
        before = vars(oxiray).get(name, value)
        if before is not value:
            _replaced.setdefault(name, before)
        setattr(oxiray, name, value)

    def __delattr__(self, name: str) -> None:
        """A test that replaced a name, and finds that the module had none of its own, deletes it to
        undo that: what was there before is there again."""
        if name.startswith("__"):
            super().__delattr__(name)
        elif name in _replaced:
            setattr(oxiray, name, _replaced.pop(name))
        else:
            delattr(oxiray, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(oxiray), "__version__"})

    def __reduce__(self) -> tuple[Any, ...]:
        # cloudpickle knows plain modules only.
        return importlib.import_module, ("ray",)
