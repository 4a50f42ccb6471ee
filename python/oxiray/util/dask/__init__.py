"""Dask's graphs run by the engine: `dask.compute(..., scheduler=ray_dask_get)`."""

from .callbacks import (
    ProgressBarCallback,
    RayDaskCallback,
    local_ray_callbacks,
    unpack_ray_callbacks,
)
from .scheduler import (
    disable_dask_on_ray,
    enable_dask_on_ray,
    ray_dask_get,
    ray_dask_get_sync,
    ray_dask_persist,
)

__all__ = [
    "ProgressBarCallback",
    "RayDaskCallback",
    "disable_dask_on_ray",
    "enable_dask_on_ray",
    "local_ray_callbacks",
    "ray_dask_get",
    "ray_dask_get_sync",
    "ray_dask_persist",
    "unpack_ray_callbacks",
]
