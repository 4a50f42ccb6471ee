"""The README as the package index shows it: there it has no neighbours, so links must be whole."""

from __future__ import annotations

import re

_HOME = "https://github.com/oxiray/oxiray/blob/v{version}/"
_PICTURES = "https://raw.githubusercontent.com/oxiray/oxiray/v{version}/"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)]+)\)")


def make_links_whole(text: str, version: str) -> str:
    """Those to files of the repository become those of the version's tag."""

    def whole(link: re.Match[str]) -> str:
        place = (_PICTURES if link[1] else _HOME).format(version=version)
        return f"{link[1]}[{link[2]}]({place}{link[3]})"

    return _LINK.sub(whole, text)


def neighbours(text: str) -> list[str]:
    """The files of the repository that it links to."""
    return [link[2].partition("#")[0] for link in _LINK.findall(text)]
