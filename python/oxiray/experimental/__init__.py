"""What may still change. TensorFlow and PyTorch are imported by whoever uses their helpers."""

from __future__ import annotations

TYPE_CHECKING = False  # see oxiray/__init__.py
if TYPE_CHECKING:
    from typing import Any

    from . import locations, tf_utils, torch_utils, tqdm_ray, ui
    from .locations import get_local_object_locations, get_object_locations
    from .tf_utils import TensorFlowVariables
    from .torch_utils import TorchVariables

# Names that come at their first use, and where from. None: the submodule itself.
_LATER = {
    "TensorFlowVariables": "tf_utils",
    "dynamic_resources": None,
    "get_local_object_locations": "locations",
    "get_object_locations": "locations",
    "internal_kv": None,
    "locations": None,
    "multiprocessing": None,
    "queue": None,
    "set_resource": "dynamic_resources",
    "TorchVariables": "torch_utils",
    "tf_utils": None,
    "torch_utils": None,
    "tqdm_ray": None,
    "ui": None,
}

__all__ = [
    "TensorFlowVariables",
    "TorchVariables",
    "get_local_object_locations",
    "get_object_locations",
    "locations",
    "tf_utils",
    "torch_utils",
    "tqdm_ray",
    "ui",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        from .._absent import no_such_name

        raise no_such_name(__name__, name)
    from importlib import import_module

    source = _LATER[name]
    module = import_module(f".{source or name}", __name__)
    value = module if source is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
