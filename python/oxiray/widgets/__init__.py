"""What is shown of objects in notebooks."""

from __future__ import annotations

import html
from typing import Any

__all__ = ["make_table_html_repr"]


def make_table_html_repr(obj: Any, title: str | None = None, max_height: str = "none") -> str:
    """A table of an object's attributes, or of a dictionary's items."""
    items = obj if isinstance(obj, dict) else vars(obj)
    rows = "".join(
        f"<tr><td><b>{html.escape(str(key))}</b></td><td>{html.escape(str(value))}</td></tr>"
        for key, value in items.items()
    )
    heading = f"<h3>{html.escape(title)}</h3>" if title else ""
    height = html.escape(max_height)
    return f'<div style="max-height: {height}">{heading}<table>{rows}</table></div>'
