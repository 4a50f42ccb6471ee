"""Little of what an operating system gives: said with the limit and its number, not waited for."""

import os
import resource
import shutil
import subprocess
import sys
import textwrap

import pytest
from control_groups import pids_group


def limited(**limits):
    """What a program may have at most, set before it runs."""

    def set_limits():
        for name, number in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (number, number))

    return set_limits


def test_actors_beyond_the_descriptors_fail_with_the_limit(driver):
    """60 fit nowhere near 256 descriptors; those that do fit go on working."""
    done = driver(
        """
        import oxiray as ray
        ray.init(num_cpus=2)

        @ray.remote(num_cpus=0)
        class Small:
            def ping(self):
                return 1

        actors = [Small.remote() for _ in range(60)]
        answers, reasons = 0, set()
        for actor in actors:
            try:
                answers += ray.get(actor.ping.remote(), timeout=100)
            except ray.exceptions.RayActorError as error:
                reasons.add(str(error))
        print(answers, "answer")
        assert 10 < answers < 60, (answers, reasons)
        assert all("256 open files (ulimit -n)" in reason for reason in reasons), reasons
        for actor in actors[:20]:
            ray.kill(actor)
        """,
        timeout=120,
        preexec_fn=limited(NOFILE=256),
    )
    assert "answer" in done.stdout


def test_too_few_descriptors_are_said_at_init(driver):
    done = driver(
        "import oxiray as ray; ray.init(num_cpus=1)",
        check=False,
        preexec_fn=limited(NOFILE=70),
    )
    assert done.returncode != 0
    assert "ulimit -n" in done.stderr and "70" in done.stderr, done.stderr


def test_a_limit_of_file_sizes_is_said_at_init(driver):
    """The store is a file in memory; SIGXFSZ would have ended the node service without a word."""
    done = driver(
        "import oxiray as ray; ray.init(num_cpus=1, object_store_memory=200 << 20)",
        check=False,
        preexec_fn=limited(FSIZE=100 << 20),
    )
    assert done.returncode != 0
    assert "ulimit -f" in done.stderr and "100.0 MiB" in done.stderr, done.stderr


def test_a_soft_limit_of_file_sizes_is_the_workers_own(driver):
    driver(
        """
        import oxiray as ray
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (50 << 20, resource.RLIM_INFINITY))
        ray.init(num_cpus=1, object_store_memory=100 << 20)

        @ray.remote
        def limit():
            return resource.getrlimit(resource.RLIMIT_FSIZE)[0]

        assert ray.get(limit.remote()) == 50 << 20
        """
    )


def test_few_processes_are_named_and_survived(driver):
    with pids_group(60) as folder:
        done = driver(
            f"""
            import os
            with open(os.path.join({folder!r}, "cgroup.procs"), "w") as file:
                file.write(str(os.getpid()))
            import oxiray as ray
            ray.init(num_cpus=1)

            @ray.remote(num_cpus=0)
            class Small:
                def ping(self):
                    return 1

            actors = [Small.remote() for _ in range(60)]
            answers, reasons = 0, set()
            for actor in actors:
                try:
                    answers += ray.get(actor.ping.remote(), timeout=100)
                except ray.exceptions.RayActorError as error:
                    reasons.add(str(error))
            assert 2 < answers < 60, (answers, reasons)
            assert all("may have 60" in reason for reason in reasons), reasons
            # Processes come free: the one that forks has survived.
            for actor in actors:
                ray.kill(actor)
            assert ray.get(ray.remote(lambda: 5).remote(), timeout=100) == 5
            """,
            timeout=150,
        )
    assert done.returncode == 0


def in_namespace(tmp_path, mounts, source):
    """Runs a program that sees these mounts, as root can make them."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("mounts of its own are root's to make")
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(source))
    script = f"{mounts} && exec {sys.executable} {program}"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "OXIRAY_TMPDIR": str(tmp_path / "base")},
    )
    if "unshare failed" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mounts of its own: {done.stderr}")
    return done


def test_a_small_dev_shm_does_not_matter(tmp_path):
    (tmp_path / "base").mkdir(mode=0o700)
    done = in_namespace(
        tmp_path,
        "mount -t tmpfs -o size=64k none /dev/shm",
        """
        import oxiray as ray
        ray.init(num_cpus=1, object_store_memory=200 << 20)
        assert len(ray.get(ray.put(b"x" * (100 << 20)))) == 100 << 20
        ray.shutdown()
        """,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("how", ["ro", "size=4k"])
def test_a_directory_without_room_is_said_at_init(tmp_path, how):
    base = tmp_path / "base"
    base.mkdir(mode=0o700)
    done = in_namespace(
        tmp_path,
        f"mount -t tmpfs -o {how},mode=700 none {base}",
        "import oxiray as ray; ray.init(num_cpus=1)",
    )
    assert done.returncode != 0
    assert str(base) in done.stderr, done.stderr
    assert ("Read-only" if how == "ro" else "No space") in done.stderr, done.stderr
