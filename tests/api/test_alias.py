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
        put = oxiray.put
        ray.put = "patched"
        ray.put = "patched again"
        assert oxiray.put == "patched again"
        del ray.put
        assert oxiray.put is ray.put is put
        ray.new = 1
        del ray.new
        assert not hasattr(oxiray, "new")
        from unittest import mock
        with mock.patch("ray.get", return_value=3):
            assert oxiray.get(None) == 3
        assert oxiray.get is ray.get and ray.get != 3
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


def test_a_lazy_import(driver):
    driver(
        """
        import importlib.util, sys

        spec = importlib.util.find_spec("ray")
        loader = importlib.util.LazyLoader(spec.loader)
        spec.loader = loader
        ray = sys.modules["ray"] = importlib.util.module_from_spec(spec)
        loader.exec_module(ray)
        assert "oxiray" not in sys.modules
        assert ray.__version__ == "2.60.0"
        import oxiray, ray.exceptions
        assert ray.get is oxiray.get and sys.modules["ray"] is ray
        assert ray.exceptions is oxiray.exceptions
        """
    )


def test_others_can_put_packages_beside_it(driver, tmp_path):
    theirs = tmp_path / "elsewhere" / "ray" / "theirs"
    theirs.mkdir(parents=True)
    (theirs / "__init__.py").write_text("from .inner import VALUE\n")
    (theirs / "inner.py").write_text("import ray\nVALUE = ray.__version__\n")
    driver(
        """
        import ray
        from ray.theirs import VALUE
        import ray.theirs.inner
        assert VALUE == "2.60.0" and ray.theirs.inner.VALUE == VALUE

        @ray.remote
        def in_a_worker():
            from ray.theirs import VALUE
            return VALUE

        ray.init(num_cpus=1)
        assert ray.get(in_a_worker.remote()) == VALUE
        """,
        env={"PYTHONPATH": str(tmp_path / "elsewhere")},
    )


def test_what_is_not_there_has_no_spec(driver):
    driver(
        """
        import importlib.util
        import ray, ray.util
        for name in ("ray.train", "ray.no_such_module", "ray.util.nothing"):
            assert importlib.util.find_spec(name) is None, name
        assert importlib.util.find_spec("ray.util.queue").name == "ray.util.queue"
        assert importlib.util.find_spec("ray") is not None
        try:
            ray.data
        except AttributeError as error:
            assert "module 'ray'" in str(error) and "docs/compatibility.md" in str(error)
        """
    )


def test_it_has_no_names_of_its_own(driver):
    driver(
        """
        import ray, oxiray
        assert {name for name in vars(ray) if not name.startswith("__")} == set()
        import ray.types
        assert ray.types is oxiray.types
        """
    )


def test_a_package_that_depends_on_ray_is_satisfied():
    distribution = importlib.metadata.distribution("ray")
    assert distribution.metadata["Name"] == "ray"
    from packaging.requirements import Requirement

    for wanted in ("ray>=2.10", "ray<3", "ray~=2.60"):
        assert Requirement(wanted).specifier.contains(distribution.version), wanted


def test_a_function_with_its_modules_name_stays_one():
    program = (
        "from ray.util.placement_group import PlacementGroup\n"
        "import ray, ray.util.placement_group\n"
        "import oxiray\n"
        "assert callable(ray.util.placement_group)\n"
        "assert ray.util.placement_group is oxiray.util.placement_group\n"
        "assert PlacementGroup is oxiray.util.PlacementGroup\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
