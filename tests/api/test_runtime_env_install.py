"""Packages that a runtime environment installs, from a directory of wheels made here."""

from __future__ import annotations

import os
import shutil
import stat
import sys

import oxiray as ray
import pytest
from oxiray.exceptions import RuntimeEnvSetupError
from test_runtime_env_packages import import_from
from wheel_maker import make_wheel

NAME = "oxiray_test_package"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    make_wheel(folder, NAME, "1.0")
    make_wheel(folder, NAME, "2.0")
    make_wheel(folder, "oxiray_test_needy", "1.0", f"Requires-Dist: {NAME}>=3\n")
    return folder


def from_wheels(wheels, *packages):
    return [f"--no-index\n--find-links {wheels}", *packages]


def test_pip_by_list_file_and_options(cluster, wheels, tmp_path):
    one = {"pip": from_wheels(wheels, f"{NAME}==1.0")}
    assert ray.get(import_from.options(runtime_env=one).remote(NAME))[0] == "1.0"
    listed = tmp_path / "requirements.txt"
    listed.write_text(f"--no-index\n--find-links {wheels}\n{NAME}==2.0\n")
    two = {"pip": str(listed)}
    assert ray.get(import_from.options(runtime_env=two).remote(NAME))[0] == "2.0"
    options = ["--no-index", "--find-links", str(wheels)]
    three = {"pip": {"packages": [NAME], "pip_check": False, "pip_install_options": options}}
    value, path = ray.get(import_from.options(runtime_env=three).remote(NAME))
    assert value == "2.0" and "/environments/pip-" in path
    with pytest.raises(ModuleNotFoundError):
        ray.get(import_from.remote(NAME))


def test_what_is_installed_is_found_by_programs_and_beside_what_was_there(cluster, wheels):
    @ray.remote(runtime_env={"pip": from_wheels(wheels, f"{NAME}==1.0")})
    def look():
        import subprocess
        import sys
        from importlib.metadata import version

        import cloudpickle

        code = f"import {NAME}; print({NAME}.VALUE)"
        said = subprocess.check_output([sys.executable, "-c", code], text=True)
        python = shutil.which("python")
        return said, version(NAME), os.path.dirname(python) in sys.executable, cloudpickle.__name__

    assert ray.get(look.remote()) == ("1.0\n", "1.0", True, "cloudpickle")


def test_a_package_that_does_not_exist(cluster, wheels):
    task = import_from.options(runtime_env={"pip": from_wheels(wheels, "oxiray_no_such_thing")})
    with pytest.raises(RuntimeEnvSetupError, match=r"(?s)pip install.*oxiray_no_such_thing"):
        ray.get(task.remote(NAME))
    with pytest.raises(RuntimeEnvSetupError):
        ray.get([task.remote(NAME) for _ in range(3)])


def test_a_check_that_fails(cluster, wheels):
    options = ["--no-index", "--find-links", str(wheels), "--no-deps"]
    wanted = {"packages": ["oxiray_test_needy"], "pip_check": True, "pip_install_options": options}
    with pytest.raises(RuntimeEnvSetupError, match=r"(?s)pip check.*oxiray.test.package"):
        ray.get(import_from.options(runtime_env={"pip": wanted}).remote("oxiray_test_needy"))
    wanted["pip_check"] = False
    task = import_from.options(runtime_env={"pip": wanted})
    assert ray.get(task.remote("oxiray_test_needy"))[0] == "1.0"


def test_the_making_has_a_limit(cluster, wheels, tmp_path):
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "setup.py").write_text("import time; time.sleep(100)\n")
    options = ["--no-index", "--no-build-isolation"]
    environment = {
        "pip": {"packages": [str(slow)], "pip_install_options": options},
        "config": {"setup_timeout_seconds": 3},
    }
    with pytest.raises(RuntimeEnvSetupError, match="setup_timeout_seconds"):
        ray.get(import_from.options(runtime_env=environment).remote("x"), timeout=60)


def test_the_driver_hears_what_takes_long(driver, tmp_path):
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "setup.py").write_text("import time; time.sleep(4); raise SystemExit('given up')\n")
    options = ["--no-index", "--no-build-isolation"]
    ended = driver(
        f"""
        import oxiray as ray
        ray.init(num_cpus=1)

        @ray.remote(runtime_env={{
            "pip": {{"packages": [{str(slow)!r}], "pip_install_options": {options!r}}}
        }})
        def f():
            pass

        try:
            ray.get(f.remote())
        except ray.exceptions.RuntimeEnvSetupError as error:
            assert "given up" in str(error)
        """
    )
    assert f"installing {slow} with pip" in ended.stderr + ended.stdout


# It may be beside this Python, in an environment that is not activated.
UV = shutil.which("uv", path=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")


@pytest.mark.skipif(UV is None, reason="uv is not installed")
def test_uv(cluster, wheels):
    path = {"PATH": f"{os.path.dirname(UV)}:${{PATH}}"}
    environment = {"uv": from_wheels(wheels, f"{NAME}==1.0"), "env_vars": path}
    assert ray.get(import_from.options(runtime_env=environment).remote(NAME))[0] == "1.0"


def test_uv_is_run_with_its_options(cluster, tmp_path, wheels):
    # A program that stands in for uv: it says how it was called, and has pip do the work.
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\necho "uv was called with $*"\n'
        'test "$1 $2 $3" = "pip install --python" || exit 3\n'
        'python=$4; shift 4; exec "$python" -m pip install "$@"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    path = {"env_vars": {"PATH": f"{program.parent}:${{PATH}}"}}
    environment = {"uv": from_wheels(wheels, f"{NAME}==2.0"), **path}
    assert ray.get(import_from.options(runtime_env=environment).remote(NAME))[0] == "2.0"
    wrong = {"uv": {"packages": from_wheels(wheels, NAME), "uv_check": True}, **path}
    with pytest.raises(RuntimeEnvSetupError, match="uv was called with pip check --python"):
        ray.get(import_from.options(runtime_env=wrong).remote(NAME))


@pytest.mark.skipif(bool(shutil.which("conda")), reason="conda is installed")
def test_a_tool_that_is_not_there(cluster):
    with pytest.raises(RuntimeEnvSetupError, match="conda"):
        ray.get(import_from.options(runtime_env={"conda": "base"}).remote("os"))


@pytest.mark.parametrize("field", [{"image_uri": "image"}, {"container": {"image": "image"}}])
def test_containers_are_refused_where_they_are_asked_for(cluster, field):
    said = rf"runtime_env\['{next(iter(field))}'\] is not supported: .*Run `oxiray start` in"
    with pytest.raises(ValueError, match=said):
        import_from.options(runtime_env=field).remote("os")
    with pytest.raises(ValueError, match=said):
        ray.remote(Holder).options(runtime_env=field).remote()


class Holder:
    pass
