"""The alias distribution: `import ray` is oxiray."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys

import pytest


def installed():
    try:
        return "+oxiray" in importlib.metadata.version("ray")
    except importlib.metadata.PackageNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not installed(), reason="the alias is not installed")


def test_modules_are_the_same_objects(driver):
    driver(
        """
        import sys
        import ray
        import ray.experimental.ui as ui
        import oxiray, oxiray.experimental.ui
        from ray.exceptions import RayTaskError
        import ray.actor, ray.remote_function, ray.runtime_context, ray.util

        assert ui is oxiray.experimental.ui
        assert RayTaskError is oxiray.exceptions.RayTaskError
        assert ray.exceptions is oxiray.exceptions is sys.modules["ray.exceptions"]
        assert ray.get is oxiray.get and ray.ObjectRef is oxiray.ObjectRef
        assert oxiray.exceptions.__spec__.name == "oxiray.exceptions"
        assert sys.modules["ray"] is ray
        assert set(oxiray.__all__) <= set(dir(ray))
        """
    )


def test_versions(driver):
    driver(
        """
        import importlib.metadata
        import ray, oxiray
        assert ray.__version__ == "2.60.0"
        assert oxiray.__version__ == "0.1.0"
        assert importlib.metadata.version("ray") == "2.60.0+oxiray.0.1.0"
        assert importlib.metadata.version("oxiray") == "0.1.0"
        """
    )


def test_names_that_are_not_there(driver):
    driver(
        """
        import ray
        try:
            ray.no_such_name
        except AttributeError as error:
            assert "'ray'" in str(error)
        try:
            import ray.no_such_module
        except ModuleNotFoundError as error:
            assert "ray.no_such_module" in str(error)
        """
    )


def test_patching_one_name_patches_both(driver):
    driver(
        """
        import ray, oxiray
        ray.put = "patched"
        assert oxiray.put == "patched"
        del ray.put
        assert not hasattr(oxiray, "put")
        """
    )


def test_programs_run_in_workers_under_the_alias(driver):
    driver(
        """
        import ray
        import ray.exceptions

        @ray.remote
        def f(x):
            assert ray.__version__ == "2.60.0"
            try:
                ray.get(fail.remote())
            except ray.exceptions.RayTaskError as error:
                assert isinstance(error, ValueError)
            return ray.get(ray.put(x))

        @ray.remote
        def fail():
            raise ValueError

        ray.init(num_cpus=2)
        assert ray.get(f.remote(3)) == 3
        """
    )


def test_beside_the_real_ray_it_refuses(tmp_path):
    import ray

    shutil.copytree(os.path.dirname(ray.__file__), tmp_path / "ray")
    (tmp_path / "ray-2.60.0.dist-info").mkdir()
    result = subprocess.run(
        [sys.executable, "-c", "import ray"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert result.returncode != 0
    assert "ImportError" in result.stderr and "pip uninstall" in result.stderr
