"""What workers print reaches the driver, with who printed it, before the program ends."""

from __future__ import annotations

import re


def test_output_of_tasks_and_actors_is_named(driver):
    result = driver(
        """
        import os, sys
        import oxiray as ray
        ray.init(num_cpus=2)

        @ray.remote
        def speak(i):
            print("task", i)
            print("error", i, file=sys.stderr)

        @ray.remote
        class Speaker:
            def __init__(self):
                print("born")
            def speak(self):
                print("actor")

        speaker = Speaker.remote()
        ray.get([speak.remote(i) for i in range(3)] + [speaker.speak.remote()])
        ray.get(speak.options(name="alias").remote(9))
        """
    )
    lines = result.stdout.splitlines()
    for i in range(3):
        assert any(re.fullmatch(rf"\(speak pid=\d+\) task {i}", line) for line in lines), lines
        assert re.search(rf"^\(speak pid=\d+\) error {i}$", result.stderr, re.MULTILINE)
    assert any(re.fullmatch(r"\(Speaker pid=\d+\) born", line) for line in lines), lines
    assert any(re.fullmatch(r"\(Speaker pid=\d+\) actor", line) for line in lines), lines
    assert any(re.fullmatch(r"\(alias pid=\d+\) task 9", line) for line in lines), lines


def test_all_of_it_is_printed_before_the_end(driver):
    result = driver(
        """
        import oxiray as ray

        @ray.remote
        def chatter():
            for i in range(5000):
                print("line", i)

        ray.get(chatter.remote())
        """
    )
    lines = [line.partition(") ")[2] for line in result.stdout.splitlines()]
    assert lines == [f"line {i}" for i in range(5000)]


def test_unfinished_lines_and_unicode(driver):
    result = driver(
        """
        import oxiray as ray
        ray.init(num_cpus=1)

        @ray.remote
        def first():
            print("no end", end="")

        @ray.remote
        def second():
            print("größer ∞")

        ray.get(first.remote())
        ray.get(second.remote())
        """,
        env={"PYTHONIOENCODING": "utf-8"},
    )
    assert re.search(r"\(first pid=\d+\) no end\n", result.stdout), result.stdout
    assert re.search(r"\(second pid=\d+\) größer ∞\n", result.stdout), result.stdout


def test_output_of_subprocesses_comes_too(driver):
    result = driver(
        """
        import subprocess
        import oxiray as ray
        ray.init(num_cpus=1)

        @ray.remote
        def shell():
            subprocess.run(["echo", "from echo"], check=True)

        ray.get(shell.remote())
        """
    )
    assert "from echo" in result.stdout


def test_log_to_driver_off(driver):
    result = driver(
        """
        import oxiray as ray
        ray.init(num_cpus=1, log_to_driver=False, logging_level="error")

        @ray.remote
        def speak():
            print("unheard")

        ray.get(speak.remote())
        """
    )
    assert result.stdout == "" and result.stderr == ""


def test_no_marks_of_ours_are_seen(driver):
    result = driver(
        """
        import oxiray as ray
        ray.init(num_cpus=1)

        @ray.remote
        def a():
            print("a")

        @ray.remote
        def b():
            print("b")

        for _ in range(20):
            ray.get([a.remote(), b.remote()])
        """
    )
    assert "oxiray-name" not in result.stdout and "\x1e" not in result.stdout
    assert len(result.stdout.splitlines()) == 40


def test_what_has_no_name_is_shown_with_its_process_only(driver):
    result = driver(
        """
        import subprocess
        import oxiray as ray
        ray.init(num_cpus=1)
        ray.get(ray.remote(lambda: subprocess.run(["echo", "from echo"])).remote())
        """
    )
    assert re.search(r"^\(pid=\d+\) from echo$", result.stdout, re.MULTILINE), result.stdout
