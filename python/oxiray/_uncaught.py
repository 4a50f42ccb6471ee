"""What ends a program is shown with what to do, where only this package knows."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any


def install() -> None:
    """From now on, in this process; whoever showed errors before goes on to."""
    sys.excepthook = partial(_show, sys.excepthook)


def _show(before: Any, kind: type[BaseException], error: BaseException, trace: Any) -> None:
    before(kind, error, trace)
    if kind is not ValueError:
        return
    from ._errors import of_read_only

    hint = of_read_only(error)
    if hint and sys.stderr is not None:
        print(hint, file=sys.stderr)
