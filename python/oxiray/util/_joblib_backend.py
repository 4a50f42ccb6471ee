"""The joblib backend whose pool is `util.multiprocessing.Pool`."""

from __future__ import annotations

from typing import Any

from joblib._parallel_backends import AutoBatchingMixin, ParallelBackendBase, PoolManagerMixin

from .._cluster import cluster_resources
from .._session import init, is_initialized
from .multiprocessing import Pool


class RayBackend(PoolManagerMixin, AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Runs joblib's batches on actors, on all CPUs of the session unless told otherwise."""

    supports_retrieve_callback = True
    supports_return_generator = True
    default_n_jobs = -1

    def __init__(self, ray_remote_args: dict[str, Any] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._remote_args = ray_remote_args

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Negative numbers count from the session's CPUs, as joblib counts from the machine's."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is not None and n_jobs > 0:
            return n_jobs
        if not is_initialized():
            init()
        cpus = int(cluster_resources().get("CPU", 1))
        return max(1, cpus + 1 + (n_jobs if n_jobs is not None else -1))

    def configure(
        self,
        n_jobs: int = 1,
        parallel: Any = None,
        ray_remote_args: dict[str, Any] | None = None,
        **_: Any,
    ) -> int:
        """Starts the pool for one use of `Parallel`."""
        processes = self.effective_n_jobs(n_jobs)
        self.parallel = parallel
        self._pool = Pool(processes, ray_remote_args=ray_remote_args or self._remote_args)
        return processes

    def terminate(self) -> None:
        """Ends the pool, and forgets how long batches took."""
        super().terminate()
        self.reset_batch_stats()
