"""Writes Ray's rows to `ray.tsv`: run in an interpreter with `ray[default]`.

PYTHONPATH=tests python -m surface.record
"""

from __future__ import annotations

from pathlib import Path

from .signatures import rows

if __name__ == "__main__":
    import ray

    lines = [f"# Public names of Ray {ray.__version__}, what they are, how they are called."]
    lines += ["\t".join(row).rstrip() for row in rows()]
    Path(__file__).with_name("ray.tsv").write_text("\n".join(lines) + "\n")
