"""What `init` shows in a notebook: versions and the way to the dashboard."""

from __future__ import annotations

import html

_LEFT = 'style="text-align: left"'


def table(rows: dict[str, str], dashboard_url: str) -> str:
    """HTML of the names and values; whatever they are, they are only text in it."""
    cells = {name: html.escape(value) for name, value in rows.items()}
    if dashboard_url:
        url = html.escape(dashboard_url)
        # Who follows the link need not be told from where: the address has the token in it.
        cells["Dashboard"] = f'<a href="{url}" target="_blank" rel="noreferrer">{url}</a>'
    else:
        cells["Dashboard"] = "not started"
    body = "".join(
        f"<tr><td {_LEFT}><b>{html.escape(name)}:</b></td><td {_LEFT}><b>{value}</b></td></tr>"
        for name, value in cells.items()
    )
    return (
        '<div style="margin-left: 50px; display: flex; align-items: center">'
        '<h3 style="margin-right: 3em">Oxiray</h3>'
        f"<table>{body}</table></div>"
    )
