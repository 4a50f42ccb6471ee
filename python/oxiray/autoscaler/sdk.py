"""What programs ask of an autoscaler: there is none, and this says so.

A request is checked and kept in the key-value table, where whoever starts nodes can read it; a
cluster that is large enough already meets it.
"""

from __future__ import annotations

import json
import warnings
from typing import Any, NoReturn

from .._cluster import cluster_resources
from ..experimental.internal_kv import _internal_kv_put

__all__ = [
    "bootstrap_config",
    "configure_logging",
    "create_or_update_cluster",
    "fillout_defaults",
    "get_docker_host_mount_location",
    "get_head_node_ip",
    "get_worker_node_ips",
    "register_callback_handler",
    "request_resources",
    "rsync",
    "run_on_cluster",
    "teardown_cluster",
]

_KEY = "resource_request"
_NAMESPACE = "autoscaler"


def request_resources(
    num_cpus: int | None = None,
    bundles: list[dict[str, float]] | None = None,
    bundle_label_selectors: list[dict[str, str]] | None = None,
) -> None:
    """Asks for a cluster of at least this size, in place of what was asked before.

    Nothing starts nodes by itself: where the cluster is smaller, a warning says so, and the request
    can be read from the key "resource_request" of the namespace "autoscaler" by what starts them.
    """
    if num_cpus is not None and (isinstance(num_cpus, bool) or not isinstance(num_cpus, int)):
        raise TypeError(f"request_resources(num_cpus=) must be a whole number, not {num_cpus!r}")
    if bundles is not None and not all(isinstance(bundle, dict) for bundle in bundles):
        raise TypeError(f"request_resources(bundles=) must be a list of dicts, not {bundles!r}")
    if bundle_label_selectors is not None and len(bundle_label_selectors) != len(bundles or []):
        raise ValueError("request_resources(bundle_label_selectors=) must be as long as bundles=")
    wanted: dict[str, float] = {"CPU": float(num_cpus or 0)}
    for bundle in bundles or []:
        for name, amount in bundle.items():
            wanted[name] = wanted.get(name, 0.0) + amount
    request = {
        "num_cpus": num_cpus,
        "bundles": bundles,
        "bundle_label_selectors": bundle_label_selectors,
    }
    _internal_kv_put(_KEY, json.dumps(request), namespace=_NAMESPACE)
    have = cluster_resources()
    lacking = {name: n for name, n in wanted.items() if n > have.get(name, 0.0)}
    if lacking:
        warnings.warn(
            f"request_resources() asked for {lacking}, of which the cluster has "
            f"{ {name: have.get(name, 0.0) for name in lacking} }: there is no autoscaler, start "
            "nodes with `oxiray start --address=...`",
            stacklevel=2,
        )


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"ray.autoscaler.sdk.{name}() is of Ray's cluster launcher, which is not here: start nodes "
        "with `oxiray start` (docs/compatibility.md)"
    )


def create_or_update_cluster(
    cluster_config: Any,
    *,
    no_restart: bool = False,
    restart_only: bool = False,
    no_config_cache: bool = False,
) -> NoReturn:
    _refuse("create_or_update_cluster")


def teardown_cluster(
    cluster_config: Any, workers_only: bool = False, keep_min_workers: bool = False
) -> NoReturn:
    _refuse("teardown_cluster")


def run_on_cluster(cluster_config: Any, **options: Any) -> NoReturn:
    _refuse("run_on_cluster")


def rsync(cluster_config: Any, **options: Any) -> NoReturn:
    _refuse("rsync")


def get_head_node_ip(cluster_config: Any) -> NoReturn:
    _refuse("get_head_node_ip")


def get_worker_node_ips(cluster_config: Any) -> NoReturn:
    _refuse("get_worker_node_ips")


def configure_logging(
    log_style: str | None = None, color_mode: str | None = None, verbosity: int | None = None
) -> None:
    """Of the launcher's output, of which there is none."""


def bootstrap_config(cluster_config: dict[str, Any], no_config_cache: bool = False) -> NoReturn:
    _refuse("bootstrap_config")


def fillout_defaults(config: dict[str, Any]) -> NoReturn:
    _refuse("fillout_defaults")


def register_callback_handler(event_name: str, callback: Any) -> NoReturn:
    _refuse("register_callback_handler")


def get_docker_host_mount_location(cluster_name: str) -> NoReturn:
    _refuse("get_docker_host_mount_location")
