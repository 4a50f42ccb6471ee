"""`ray` is `oxiray`, in every process that has this distribution installed.

`ray.x.y` is the very module `oxiray.x.y`, so that classes, exceptions and pickles are the same
under both names. `ray` itself is a module of its own that forwards: only its version differs.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Sequence
from typing import Any

_PREFIX = "ray."


def _refuse_real_ray() -> None:
    """Both write into the same `ray/`; half of each would be a riddle to debug."""
    package = os.path.dirname(os.path.abspath(__file__))
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


class _Loader:
    """Loads `ray.x` by handing out `oxiray.x`."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = importlib.import_module("oxiray." + spec.name.removeprefix(_PREFIX))
        # The import system writes the alias's spec into the module; exec_module puts it back.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        alias = module.__spec__
        if alias is not None and isinstance(alias.loader, _Loader):
            module.__spec__ = alias.loader_state


class _Finder:
    """Finds `ray.x` wherever there is an `oxiray.x`."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith(_PREFIX):
            return None
        real = importlib.util.find_spec("oxiray." + name.removeprefix(_PREFIX))
        if real is None:
            return None
        is_package = real.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(name, _Loader(), is_package=is_package)  # type: ignore[arg-type]


class _Alias(types.ModuleType):
    """The module `ray`: dunder names are its own, every other is oxiray's."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name != "__all__":
            raise AttributeError(f"module 'ray' has no attribute {name!r}")
        try:
            return getattr(_oxiray, name)
        except AttributeError:
            raise AttributeError(f"module 'ray' has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            setattr(_oxiray, name, value)

    def __delattr__(self, name: str) -> None:
        if name.startswith("__"):
            super().__delattr__(name)
        else:
            delattr(_oxiray, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(_oxiray), "__version__"})

    def __reduce__(self) -> tuple[Any, ...]:
        # cloudpickle knows plain modules only.
        return importlib.import_module, ("ray",)


def _install() -> None:
    alias = _Alias("ray", __doc__)
    own = {
        "__file__": __file__,
        "__package__": "ray",
        "__spec__": __spec__,
        "__loader__": __spec__.loader,
        "__path__": [],  # the finder alone says what is in the package
        "__version__": _ray_version,
        "__commit__": f"oxiray-{_oxiray.__version__}",
    }
    for name, value in own.items():
        setattr(alias, name, value)
    sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
    sys.modules["ray"] = alias


_refuse_real_ray()

import oxiray as _oxiray  # noqa: E402
from oxiray._version import ray_version as _ray_version  # noqa: E402

_install()
