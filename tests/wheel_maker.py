"""Wheels and zip files, made where a test needs them."""

from __future__ import annotations

import zipfile


def zipped(path, entries):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in entries.items():
            archive.writestr(name, text)
    return path


def make_wheel(folder, name, version, requires=""):
    """A wheel with one module of that name, whose VALUE is its version."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VALUE = {version!r}\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    record = "".join(f"{each},,\n" for each in [*files, f"{about}/RECORD"])
    return zipped(path, {**files, f"{about}/RECORD": record})
