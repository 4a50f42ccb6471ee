"""Names and parameters of what a package offers, as lines of text, and whether one way to call
covers another.

A row is a name, what it is, and its parameters: `(a, b=, *rest, c=, **more)`, `=` for one that has
a default; `?` where nobody can know.
"""

from __future__ import annotations

import importlib
import inspect

# Where public names are. What `ray.experimental` and `ray.util` have besides is not Core's.
MODULES = """
ray ray.actor ray.remote_function ray.runtime_context ray.exceptions ray.types ray.job_config
ray.client_builder ray.internal ray.cluster_utils ray.cross_language ray.cloudpickle ray.widgets
ray.dag ray.dag.dag_node ray.dag.input_node ray.dag.output_node ray.dag.function_node
ray.dag.class_node ray.runtime_env ray.job_submission ray.autoscaler.sdk ray.util ray.util.state
ray.util.state.common ray.util.state.exception ray.util.placement_group
ray.util.scheduling_strategies ray.util.queue ray.util.actor_pool ray.util.actor_group
ray.util.multiprocessing ray.util.multiprocessing.pool ray.util.joblib ray.util.metrics
ray.util.collective ray.util.collective.types ray.util.iter ray.util.dask ray.util.spark
ray.util.debug ray.util.rpdb ray.util.debugpy ray.util.helpers ray.util.serialization
ray.util.check_serialize ray.util.accelerators ray.util.tpu ray.util.annotations
ray.util.client_connect ray.util.timer ray.experimental ray.experimental.locations
ray.experimental.dynamic_resources ray.experimental.internal_kv ray.experimental.tqdm_ray
ray.experimental.queue ray.experimental.shuffle ray.experimental.multiprocessing
ray.experimental.sandbox ray.experimental.channel ray.experimental.collective
""".split()

# Used by programs, and exported by nobody.
MORE = {
    "ray": "ClusterID SCRIPT_MODE WORKER_MODE LOCAL_MODE RESTORE_WORKER_MODE SPILL_WORKER_MODE "
    "worker ray_constants state exceptions remote_function runtime_context runtime_env job_config "
    "cloudpickle dag experimental types cross_language client_builder job_submission",
    "ray.experimental.internal_kv": "_internal_kv_initialized _internal_kv_get _internal_kv_put "
    "_internal_kv_exists _internal_kv_del _internal_kv_list",
}


def public_names(module) -> list[str]:
    names = set(getattr(module, "__all__", ())) | set(MORE.get(module.__name__, "").split())
    for name, value in vars(module).items():
        is_own = getattr(value, "__module__", None) == module.__name__
        if not name.startswith("_") and is_own and callable(value):
            names.add(name)
    return sorted(names)


def kind_of(value) -> str:
    if inspect.ismodule(value):
        return "module"
    if inspect.isclass(value):
        return "class"
    return "function" if callable(value) else "value"


def parameters(value) -> str:
    """How something is called; `?` if it does not say."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "?"
    parts, is_keyword = [], False
    for parameter in signature.parameters.values():
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            parts.append("*")
            is_keyword = True
        is_keyword = is_keyword or parameter.kind is parameter.VAR_POSITIONAL
        default = "" if parameter.default is parameter.empty else "="
        parts.append(f"{star}{parameter.name}{default}")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            parts[-1] += "/"
    return f"({', '.join(parts)})"


def members(cls) -> list[tuple[str, str, str]]:
    """Public methods and properties that a class has of its own package."""
    found = {}
    for base in cls.__mro__:
        if not (getattr(base, "__module__", "") or "").startswith(("ray", "oxiray")):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in found or inspect.isclass(member):
                continue
            plain = isinstance(member, (staticmethod, classmethod)) or callable(member)
            if isinstance(member, property) or type(member).__name__ in (
                "getset_descriptor",
                "member_descriptor",
                "cached_property",
            ):
                found[name] = ("property", "")
            elif plain:
                found[name] = ("method", without_self(parameters(getattr(cls, name))))
    return [(name, *what) for name, what in sorted(found.items())]


def without_self(shown: str) -> str:
    inner = shown[1:-1].split(", ") if shown.startswith("(") else [shown]
    return f"({', '.join(inner[1:])})" if inner[0] in ("self", "self/", "cls") else shown


def rows(modules=MODULES) -> list[tuple[str, str, str]]:
    """Every name, what it is, and its parameters."""
    found = {}
    for path in modules:
        try:
            module = importlib.import_module(path)
        except Exception:
            continue
        for name in public_names(module):
            try:
                value = getattr(module, name)
            except (AttributeError, ImportError, RuntimeError):
                continue
            kind, full = kind_of(value), f"{path}.{name}"
            found[full] = (kind, parameters(value) if kind in ("class", "function") else "")
            is_own = (getattr(value, "__module__", "") or "").startswith(("ray", "oxiray"))
            if kind == "class" and is_own and not issubclass(value, BaseException):
                for member, *what in members(value):
                    found[f"{full}.{member}"] = tuple(what)
    return [(name, *what) for name, what in sorted(found.items())]


def covers(ours: str, theirs: str) -> bool:
    """Whether every call that their parameters allow can be made with ours."""
    if "?" in (ours, theirs):
        return True  # what a class of C says of itself is not known
    own, other = _parsed(ours), _parsed(theirs)
    any_place = any(star == "*" for star, *_ in own)
    any_name = any(star == "**" for star, *_ in own)
    places = [name for star, name, _, by in own if not star and by in ("place", "both")]
    names = {name for star, name, _, by in own if not star and by in ("name", "both")}
    needed = {name for star, name, default, by in own if not (star or default or by == "place")}
    needed_places = sum(by == "place" and not default for _, _, default, by in own)
    at = 0
    for star, name, default, by in other:
        if (star == "*" and not any_place) or (star == "**" and not any_name):
            return False
        if star:
            continue
        if by in ("place", "both"):
            if at < len(places):
                if by == "both" and places[at] != name:
                    return False
            elif not any_place:
                return False
            at += 1
        if by in ("name", "both") and name not in names and not any_name:
            return False
        if default and name in needed:
            return False
    known = {name for _, name, _, _ in other}
    return (needed <= known and needed_places <= at) or any(star for star, *_ in other)


def _parsed(shown: str) -> list[tuple[str, str, bool, str]]:
    """Star, name, whether it has a default, and whether it is given by place, name or both."""
    found, by = [], "both"
    for part in filter(None, shown.strip("()").split(", ")):
        if part == "*":
            by = "name"
            continue
        star = "**" if part.startswith("**") else "*" if part.startswith("*") else ""
        name = part.strip("*/=")
        place = "place" if part.endswith("/") else by
        found.append((star, name, "=" in part, place))
        if star == "*":
            by = "name"
    return found
