"""The build backend: maturin's, with the programs in every wheel and everything in the sdist.

`pip install .`, `pip install git+...` and `pip install oxiray-....tar.gz` come here, and so does
`make build`. What is in the way of a build is said in one sentence.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import maturin
import pages
import programs
import readme
import sdist
import wheel_file

ROOT = Path(__file__).resolve().parent.parent


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    programs.prepare(ROOT)
    pages.build(ROOT)
    programs.build(ROOT)
    name: str = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    # For profilers and debuggers; three times as large.
    if not os.environ.get("OXIRAY_KEEP_SYMBOLS"):
        wheel_file.finish(Path(wheel_directory, name), ROOT)
    return name


def build_editable(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    programs.prepare(ROOT)
    pages.build(ROOT)
    programs.build(ROOT)
    name: str = maturin.build_editable(wheel_directory, config_settings, metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    programs.prepare(ROOT)
    pages.build(ROOT)
    if not pages.are_there(ROOT):
        sys.exit("oxiray: an sdist has the dashboard's pages built, which needs Node: see above")
    return sdist.write(ROOT, Path(sdist_directory), _metadata().encode())


def _metadata() -> str:
    with tempfile.TemporaryDirectory() as folder:
        name = maturin.prepare_metadata_for_build_wheel(folder)
        text = Path(folder, name, "METADATA").read_text()
    return readme.make_links_whole(text, name.split("-")[1].removesuffix(".dist"))


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    # pip asks for this first, and maturin would say what is missing in cargo's words.
    programs.prepare(ROOT)
    name: str = maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)
    return name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


# Rust is asked for, not fetched behind the user's back.
def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return []


get_requires_for_build_editable = get_requires_for_build_wheel
get_requires_for_build_sdist = get_requires_for_build_wheel
