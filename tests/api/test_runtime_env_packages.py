"""Runtime environments with files: working_dir, py_modules, archives, also hostile ones."""

from __future__ import annotations

import http.server
import io
import os
import stat
import sys
import tarfile
import threading
import zipfile

import oxiray as ray
import pytest
from oxiray import _unpack
from oxiray._ignore_rules import files_below
from oxiray.exceptions import RuntimeEnvSetupError
from wheel_maker import make_wheel, zipped


@ray.remote
def look():
    """Where a worker is, and what is there."""
    import pathlib

    return os.getcwd(), sorted(str(path) for path in pathlib.Path().rglob("*"))


@ray.remote
def import_from(name):
    from importlib import import_module

    module = import_module(name)
    return module.VALUE, module.__file__


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / "own_module").mkdir(parents=True)
    (root / "own_module" / "__init__.py").write_text("VALUE = 'in a package'\n")
    (root / "own_file.py").write_text("VALUE = 'in a file'\n")
    (root / "data.txt").write_text("text")
    (root / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "run.sh").chmod(0o755)
    return root


def test_a_directory_is_the_current_one_of_workers(cluster, project):
    environment = {"working_dir": str(project)}
    where, files = ray.get(look.options(runtime_env=environment).remote())
    assert where != str(project)
    assert files == [
        "data.txt", "own_file.py", "own_module", "own_module/__init__.py", "run.sh",
    ]  # fmt: skip
    task = import_from.options(runtime_env=environment)
    value, path = ray.get(task.remote("own_module"))
    assert value == "in a package" and path.startswith(where)
    assert ray.get(task.remote("own_file"))[0] == "in a file"

    @ray.remote(runtime_env=environment)
    def start():
        import subprocess

        found = [sys.executable, "-c", "import own_module; print(own_module.VALUE)"]
        return (
            subprocess.check_output(["./run.sh"], text=True),
            subprocess.check_output(found, text=True, cwd="/"),
        )

    assert ray.get(start.remote()) == ("ran\n", "in a package\n")


def test_equal_contents_are_one_environment(cluster, project, tmp_path):
    import shutil

    shutil.copytree(project, tmp_path / "copy")
    first, _ = ray.get(look.options(runtime_env={"working_dir": str(project)}).remote())
    second, _ = ray.get(look.options(runtime_env={"working_dir": str(tmp_path / "copy")}).remote())
    assert first == second
    (project / "data.txt").write_text("changed")
    third, _ = ray.get(look.options(runtime_env={"working_dir": str(project)}).remote())
    assert third != first


def test_children_inherit_it_and_variables_join(cluster, project):
    @ray.remote
    def nested():
        return ray.get(look.options(runtime_env={"env_vars": {"A": "1"}}).remote())

    environment = {"working_dir": str(project)}
    where, files = ray.get(nested.options(runtime_env=environment).remote())
    assert "own_file.py" in files
    assert where == ray.get(look.options(runtime_env=environment).remote())[0]


def test_the_working_dir_of_a_job(driver, project):
    driver(
        f"""
        import os
        import oxiray as ray
        ray.init(num_cpus=1, runtime_env={{"working_dir": {str(project)!r}}})

        @ray.remote
        def f():
            import own_module
            return own_module.VALUE, open("data.txt").read()

        assert ray.get(f.remote()) == ("in a package", "text")
        address = ray.get_runtime_context().runtime_env["working_dir"]
        assert address.startswith("gcs://") and address.endswith(".zip")
        """
    )


def test_excludes_and_ignore_files(cluster, project):
    (project / ".gitignore").write_text("*.log\n!kept.log\n/data.txt\nbuild/\n# no rule\n")
    for name in "a.log kept.log own_module/b.log build/x build.txt own_module/build".split():
        path = project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (project / "own_module" / ".gitignore").write_text("!b.log\n")
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("")
    environment = {"working_dir": str(project), "excludes": ["own_file.py", "/run.*"]}
    _, files = ray.get(look.options(runtime_env=environment).remote())
    assert files == [
        ".gitignore", "build.txt", "kept.log", "own_module", "own_module/.gitignore",
        "own_module/__init__.py", "own_module/b.log", "own_module/build",
    ]  # fmt: skip


def test_what_is_usually_left_out(cluster, project, monkeypatch):
    (project / "venv").mkdir()
    (project / "venv" / "big").write_text("")
    task = look.options(runtime_env={"working_dir": str(project)})
    assert "venv" not in ray.get(task.remote())[1]
    monkeypatch.setenv("RAY_OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES", "")
    task = look.options(runtime_env={"working_dir": str(project)})
    assert "venv/big" in ray.get(task.remote())[1]


def test_modules_beside_the_script_come_from_the_working_dir(driver, project, tmp_path):
    (tmp_path / "beside.py").write_text("VALUE = 1\n")
    driver(
        f"""
        import beside
        import oxiray as ray
        ray.init(num_cpus=1, runtime_env={{"working_dir": {str(project)!r}}})

        @ray.remote
        def f():
            import beside

        try:
            ray.get(f.remote())
        except ModuleNotFoundError:
            pass
        else:
            raise AssertionError("it is not in the working_dir")
        """
    )


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        (["*.py"], ["a/b/d.txt", "c.txt"]),
        (["a/"], ["c.txt", "x.py"]),
        (["/b"], ["a/b/d.txt", "a/b/e.py", "c.txt", "x.py"]),
        (["b"], ["c.txt", "x.py"]),
        (["a/**/e.py"], ["a/b/d.txt", "c.txt", "x.py"]),
        (["**/d.txt"], ["a/b/e.py", "c.txt", "x.py"]),
        (["a/*.py"], ["a/b/d.txt", "a/b/e.py", "c.txt", "x.py"]),
        (["[cx].*", "!x.py"], ["a/b/d.txt", "a/b/e.py", "x.py"]),
        (["?.txt"], ["a/b/e.py", "x.py"]),
        (["", "#x.py", "\\#x.py"], ["a/b/d.txt", "a/b/e.py", "c.txt", "x.py"]),
    ],
    ids=str,
)
def test_rules_are_those_of_git(tmp_path, rules, left):
    for name in ("a/b/d.txt", "a/b/e.py", "c.txt", "x.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    assert files_below(str(tmp_path), rules, ()) == left


def test_modules(cluster, project, tmp_path):
    import importlib.util

    loose = tmp_path / "loose.py"
    loose.write_text("VALUE = 'loose'\n")
    spec = importlib.util.spec_from_file_location("loose", loose)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    packed = zipped(tmp_path / "packed.zip", {"from_zip.py": "VALUE = 'zipped'\n"})
    environment = {"py_modules": [str(project / "own_module"), module, str(packed)]}
    task = import_from.options(runtime_env=environment)
    values = [value for value, _ in ray.get([task.remote(n) for n in ("own_module", "loose")])]
    assert values == ["in a package", "loose"]
    assert ray.get(task.remote("from_zip"))[0] == "zipped"
    assert ray.get(look.options(runtime_env=environment).remote())[0] == os.getcwd()


def test_a_wheel_is_a_module(cluster, tmp_path):
    wheel = make_wheel(tmp_path, "oxiray_test_wheel", "1.0")
    environment = {"py_modules": [str(wheel)]}
    task = import_from.options(runtime_env=environment)
    assert ray.get(task.remote("oxiray_test_wheel"))[0] == "1.0"


@pytest.mark.parametrize("ending", ["zip", "tar.gz"])
def test_archives_by_their_addresses(cluster, tmp_path, ending):
    path = tmp_path / f"outer.{ending}"
    entries = {"outer/from_archive.py": "VALUE = 'archived'\n", "outer/deep/x.txt": "x"}
    if ending == "zip":
        zipped(path, entries)
    else:
        with tarfile.open(path, "w:gz") as archive:
            for name, text in entries.items():
                info = tarfile.TarInfo(name)
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text.encode()))
    for environment in ({"working_dir": f"file://{path}"}, {"py_modules": [f"file://{path}"]}):
        task = import_from.options(runtime_env=environment)
        assert ray.get(task.remote("from_archive"))[0] == "archived"
    with served(tmp_path) as address:
        environment = {"working_dir": f"{address}/outer.{ending}"}
        _, files = ray.get(look.options(runtime_env=environment).remote())
        assert files == ["deep", "deep/x.txt", "from_archive.py"]
        missing = {"working_dir": f"{address}/none.{ending}"}
        with pytest.raises(RuntimeEnvSetupError, match="404"):
            ray.get(look.options(runtime_env=missing).remote())
    with pytest.raises(RuntimeEnvSetupError, match=r"/nowhere/a\.zip"):
        ray.get(look.options(runtime_env={"working_dir": "file:///nowhere/a.zip"}).remote())


class served:
    """A directory on a web server of this machine."""

    def __init__(self, directory):
        def handler(*arguments):
            return _Quiet(*arguments, directory=str(directory))

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_what_is_too_large_is_refused_with_the_largest_files(fresh, project, monkeypatch):
    monkeypatch.setenv("OXIRAY_PACKAGE_MAX_BYTES", "10000")
    (project / "big.bin").write_bytes(bytes(20_000))
    (project / "small.bin").write_bytes(bytes(5_000))
    for kind in (ValueError, RuntimeEnvSetupError):
        with pytest.raises(kind, match=r"(?s)19\.5 KiB +big\.bin.*small\.bin.*excludes"):
            fresh(runtime_env={"working_dir": str(project)})
    assert not ray.is_initialized()
    fresh(runtime_env={"working_dir": str(project), "excludes": ["big.bin"]})
    assert "small.bin" in ray.get(look.remote())[1]


def test_links_stay_inside(cluster, project, tmp_path):
    (project / "link").symlink_to("data.txt")
    _, files = ray.get(look.options(runtime_env={"working_dir": str(project)}).remote())
    assert "link" in files
    (tmp_path / "secret").write_text("")
    (project / "out").symlink_to("../secret")
    with pytest.raises(ValueError, match="the link out"):
        look.options(runtime_env={"working_dir": str(project)}).remote()
    environment = {"working_dir": str(project), "excludes": ["out"]}
    assert "link" in ray.get(look.options(runtime_env=environment).remote())[1]


def hostile(tmp_path, kind):
    path = tmp_path / "hostile.zip"
    if kind == "bomb":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("zeros", bytes(30_000_000))
        return path
    if kind == "broken":
        path.write_bytes(b"PK\x03\x04" + bytes(100))
        return path
    with zipfile.ZipFile(path, "w") as archive:
        if kind == "link":
            info = zipfile.ZipInfo("link")
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, "/etc")
            archive.writestr("link/passwd", "no")
        elif kind == "climbing link":
            info = zipfile.ZipInfo("a/link")
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, "../../..")
        elif kind == "pipe":
            info = zipfile.ZipInfo("pipe")
            info.external_attr = (stat.S_IFIFO | 0o666) << 16
            archive.writestr(info, "")
        else:
            archive.writestr(kind, "no")
    return path


KINDS = ["../x", "a/../../x", "/tmp/x", "..\\x", "C:/x", "link", "climbing link", "pipe"]


@pytest.mark.parametrize("kind", [*KINDS, "bomb", "broken"])
def test_hostile_archives_are_refused(tmp_path, kind):
    target = tmp_path / "target"
    target.mkdir()
    before = set(os.listdir(tmp_path)) | {"hostile.zip"}
    with pytest.raises(_unpack.BadArchive):
        _unpack.unpack(str(hostile(tmp_path, kind)), str(target), 20_000_000, strip=False)
    assert set(os.listdir(tmp_path)) == before
    assert not any(os.path.islink(target / name) for name in os.listdir(target))


@pytest.mark.parametrize("kind", ["link", "dev", "hard link"])
def test_hostile_tar_files_are_refused(tmp_path, kind):
    path, target = tmp_path / "hostile.tar.gz", tmp_path / "target"
    target.mkdir()
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("x")
        info.type = {"link": tarfile.SYMTYPE, "dev": tarfile.CHRTYPE}.get(kind, tarfile.LNKTYPE)
        info.linkname = "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(_unpack.BadArchive):
        _unpack.unpack(str(path), str(target), 1000, strip=False)
    assert os.listdir(target) == []


def test_a_refused_archive_is_an_error_of_the_task(cluster, tmp_path):
    environment = {"working_dir": str(hostile(tmp_path, "../x"))}
    with pytest.raises(RuntimeEnvSetupError, match=r"\.\./x"):
        ray.get(look.options(runtime_env=environment).remote())


def test_parts_go_when_nobody_uses_them(driver, tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_bytes(name.encode() * 1000)
    driver(
        f"""
        import os, time
        import oxiray as ray
        ray.init(num_cpus=1)

        @ray.remote
        class Holder:
            def where(self):
                return os.getcwd()

        def held(name):
            environment = {{"working_dir": os.path.join({str(tmp_path)!r}, name)}}
            holder = Holder.options(runtime_env=environment).remote()
            return holder, ray.get(holder.where.remote())

        first, one = held("one")
        second, two = held("two")
        assert os.path.exists(one) and os.path.exists(two), "in use, whatever the limit"
        """,
        env={"OXIRAY_ENVIRONMENTS_MAX_BYTES": "1000"},
    )


def test_unused_parts_are_removed_by_size(tmp_path, monkeypatch):
    from oxiray._environment_parts import Parts

    monkeypatch.setenv("OXIRAY_ENVIRONMENTS_MAX_BYTES", "2500")
    parts = Parts(str(tmp_path))

    def make(path):
        with open(os.path.join(path, "data"), "wb") as file:
            file.write(bytes(1000))

    def in_child(name):
        pid = os.fork()
        if pid == 0:
            parts.get(name, make)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0

    in_child("a")
    os.utime(tmp_path / "environments" / "a.lock", (1, 1))
    held = parts.get("b", make)
    os.utime(tmp_path / "environments" / "b.lock", (2, 2))
    in_child("c")
    left = sorted(name for name in os.listdir(tmp_path / "environments") if "." not in name)
    assert left == ["b", "c"], "the oldest that nobody holds"
    in_child("d")
    left = sorted(name for name in os.listdir(tmp_path / "environments") if "." not in name)
    assert os.path.exists(held) and "d" in left and "a" not in left


def test_a_part_that_was_not_finished_is_made_again(tmp_path):
    from oxiray._environment_parts import Parts

    parts = Parts(str(tmp_path))

    def fail(path):
        open(os.path.join(path, "half"), "w").close()
        raise ValueError

    with pytest.raises(ValueError):
        parts.get("a", fail)
    assert os.listdir(parts.get("a", lambda path: None)) == []
