"""Why the native module cannot be imported: it was built for something else, or not at all."""

from __future__ import annotations

import os
import sys


def explain(error: ImportError) -> ImportError:
    """Works where nothing else of the package does."""
    folder = os.path.dirname(os.path.abspath(__file__))
    there = sorted(name for name in os.listdir(folder) if name.startswith("_native."))
    modules = [name for name in there if name.endswith(".so")]
    python = f"Python {sys.version_info[0]}.{sys.version_info[1]} ({sys.executable})"
    if not modules:
        why = "it has none: this is a source tree, or half an installation"
    elif isinstance(error, ModuleNotFoundError):
        why = f"it has {', '.join(modules)}, which is for another Python or another machine"
    else:
        why = f"{', '.join(modules)} cannot be loaded: {error}"
    return ImportError(
        f"oxiray in {folder} has no native module for {python}: {why}. Install it: "
        f"{sys.executable} -m pip install --force-reinstall oxiray (from source: pip install .)"
    )
