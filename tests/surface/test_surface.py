"""Every public name of Ray's Core is here and can be called as Ray's can, or a table says why not.

`ray.tsv` has Ray's names, from `record`; `oxiray._absent` those that are not here; `DIFFERENT`
those that are called in another way.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from pathlib import Path

import pytest
from oxiray._absent import ABSENT, no_such_name, why_absent

from . import page
from .signatures import covers, kind_of, parameters, without_self

REFUSED = "raises NotImplementedError as Ray's does, whatever it is given"
INSIDE = "made by the engine, not by programs"
# Names that are called in another way than Ray's, and why.
DIFFERENT = {
    "ray.types.ObjectRef": "Ray's is for type checkers alone, ours is the class itself",
    "ray.actor.ActorClass": INSIDE,
    "ray.actor.ActorHandle": INSIDE,
    "ray.actor.ActorMethod": INSIDE,
    "ray.remote_function.RemoteFunction": INSIDE,
    "ray.util.multiprocessing.pool.AsyncResult": INSIDE,
    "ray.ObjectRefGenerator": INSIDE,
    "ray.ObjectRefGenerator.send": REFUSED,
    "ray.ObjectRefGenerator.throw": REFUSED,
    "ray.ObjectRefGenerator.asend": REFUSED,
    "ray.ObjectRefGenerator.athrow": REFUSED,
    "ray.ObjectRef.as_future": "without what Ray's own event loops pass",
    "ray.ObjectID.as_future": "without what Ray's own event loops pass",
    "ray.util.actor_group.ActorGroup": "Ray's says nothing of its arguments, ours does",
}


def rays() -> list[tuple[str, str, str]]:
    lines = Path(__file__).with_name("ray.tsv").read_text().splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return [(row[0], row[1], row[2] if len(row) > 2 else "") for row in rows]


def found(name: str):
    """Our object of that name, and the class that it is a member of; raises LookupError."""
    parts = name.split(".")[1:]
    value, owner = importlib.import_module("oxiray"), None
    for at, part in enumerate(parts):
        try:
            value, owner = getattr(value, part), value
        except AttributeError:
            # A function may have the name of its module, as `util.placement_group` does.
            module = sys.modules.get("oxiray." + ".".join(parts[:at]))
            if hasattr(module, part):
                value, owner = getattr(module, part), None
                continue
            if not inspect.ismodule(value):
                raise LookupError(name) from None
            try:
                value, owner = importlib.import_module("oxiray." + ".".join(parts[: at + 1])), None
            except ImportError:
                raise LookupError(name) from None
    return value, owner if inspect.isclass(owner) else None


def is_here(name: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found(name)
        except LookupError:
            owner, _, member = name.rpartition(".")
            # What is set on instances is seen in the text of the class.
            try:
                value, _ = found(owner)
                return inspect.isclass(value) and f"self.{member}" in inspect.getsource(value)
            except (LookupError, OSError, TypeError):
                return False
    return True


def test_every_name_is_here_or_in_the_table():
    absent = [name for name, *_ in rays() if not is_here(name)]
    unknown = [name for name in absent if why_absent(name) is None]
    assert not unknown, "neither here nor in oxiray._absent:\n" + "\n".join(unknown)


def test_the_table_names_nothing_that_is_here():
    listed = [name for names in ABSENT.values() for name in names.split()]
    here = [name for name in listed if name.count(".") > 1 and is_here(name)]
    assert not here, "take them out of oxiray._absent"


def test_every_call_that_ray_takes_is_taken():
    wrong = []
    for name, kind, theirs in rays():
        skipped = name in DIFFERENT or why_absent(name) is not None
        if skipped or kind not in ("class", "function", "method"):
            continue
        try:
            value, owner = found(name)
        except LookupError:
            continue  # an attribute of instances
        if kind_of(value) == "class" and issubclass(value, BaseException):
            continue
        ours = parameters(value)
        ours = without_self(ours) if owner is not None else ours
        if not covers(ours, theirs):
            wrong.append(f"{name}: Ray's {theirs}, ours {ours}")
    assert not wrong, "\n".join(wrong)


def test_what_differs_differs():
    rows = {name: theirs for name, _, theirs in rays()}
    for name in DIFFERENT:
        value, owner = found(name)
        ours = parameters(value)
        ours = without_self(ours) if owner is not None else ours
        is_same = covers(ours, rows[name]) and "Ray's says nothing" not in DIFFERENT[name]
        assert not is_same, f"{name} is as Ray's now: take it out of DIFFERENT"


def test_the_page_has_the_table():
    assert page.PAGE.read_text() == page.page(), "PYTHONPATH=tests python -m surface.page"


def test_a_name_that_will_not_be_here_says_so():
    import oxiray as ray

    for owner, name in [(ray, "data"), (ray.util, "spark"), (ray.experimental, "RDTManager")]:
        with pytest.raises(AttributeError, match=rf"'{name}': it is .*docs/compatibility\.md"):
            getattr(owner, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
        _ = ray.nothing
    assert "library above Core" in str(no_such_name("oxiray", "serve"))


@pytest.mark.parametrize(
    ("ours", "theirs", "is_covered"),
    [
        ("(a, b=)", "(a, b=)", True),
        ("(a, *, b=)", "(a, b=)", False),
        ("(a, b=)", "(a, *, b=)", True),
        ("(a, b)", "(a, b=)", False),
        ("(x)", "(a)", False),
        ("(x/)", "(a/)", True),
        ("(*args, **kwargs)", "(a, b=, *, c=)", True),
        ("(a)", "(a, *rest)", False),
        ("(a, more)", "(a)", False),
    ],
)
def test_what_covers_what(ours, theirs, is_covered):
    assert covers(ours, theirs) is is_covered
