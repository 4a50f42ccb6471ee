"""What workers print reaches the driver, with who printed it, before the program ends."""

from __future__ import annotations

import re
import time

from terminal import run_at_terminal, screen


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
        """,
        env={"RAY_DEDUP_LOGS": "0"},
    )
    lines = result.stdout.splitlines()
    for i in range(3):
        assert any(re.fullmatch(rf"\(speak pid=\d+\) task {i}", line) for line in lines), lines
        assert re.search(rf"^\(speak pid=\d+\) error {i}$", result.stderr, re.MULTILINE)
    assert any(re.fullmatch(r"\(Speaker pid=\d+\) born", line) for line in lines), lines
    assert any(re.fullmatch(r"\(Speaker pid=\d+\) actor", line) for line in lines), lines
    assert any(re.fullmatch(r"\(alias pid=\d+\) task 9", line) for line in lines), lines


def test_an_actor_is_called_what_its_class_says(driver):
    result = driver(
        """
        import oxiray as ray
        ray.init(num_cpus=1, logging_level="error")

        class Speaker:
            def __init__(self, name="nobody"):
                self.name = name
                print(name, "is born")
            def rename(self, name):
                self.name = name
                print(name, "speaks")
            def __repr__(self):
                return f"Speaker<{self.name}>"

        class Broken(Speaker):
            def __repr__(self):
                raise ValueError("no name")

        class Child(Speaker):
            pass

        def speak(kind, *args, to):
            ray.get(ray.remote(kind).options(num_cpus=0).remote(*args).rename.remote(to))

        speak(Speaker, "Ada", to="Grace")
        speak(Broken, to="broken")
        speak(Child, "a\\nb" + "c" * 100, to="long")
        """,
        env={"RAY_DEDUP_LOGS": "0"},
    )
    said = dict(
        reversed(re.match(r"\((.*) pid=\d+\) (.*)", line).groups())
        for line in result.stdout.splitlines()
        if line.startswith("(")
    )
    assert said["Ada is born"] == "Speaker", "before it is made it cannot say"
    assert said["Grace speaks"] == "Speaker<Ada>", "once, when it is made"
    assert said["broken speaks"] == "Broken"
    name = said["long speaks"]
    assert name.startswith("Speaker<a bccc") and name.endswith("c…") and len(name) == 80


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


def test_what_has_no_end_is_not_lost_with_the_session(driver):
    result = driver(
        """
        import oxiray as ray
        ray.init(num_cpus=1)

        @ray.remote
        def last():
            print("no end", end="")

        ray.get(last.remote())
        """
    )
    assert re.fullmatch(r"\(last pid=\d+\) no end\n", result.stdout), result.stdout


def test_what_another_node_printed_is_there_when_the_driver_leaves_at_once(driver):
    result = driver(
        """
        import oxiray as ray
        from oxiray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        cluster.add_node(num_cpus=1, resources={"there": 1})

        @ray.remote
        def speak(i):
            print("line", i)

        for i in range(10):
            ray.init(address=cluster.address, logging_level="error")
            ray.get(speak.options(resources={"there": 1} if i % 2 else {}).remote(i))
            ray.shutdown()
        cluster.shutdown()
        """
    )
    lines = [line.partition(") ")[2] for line in result.stdout.splitlines()]
    assert lines == [f"line {i}" for i in range(10)], lines


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


# Two workers say the same, one after the other, and then one of them once more.
SAME_LINES = """
    import oxiray as ray
    ray.init(num_cpus=2, logging_level="error")

    @ray.remote
    class Speaker:
        def speak(self, i):
            print("the same but for", i)

    speakers = [Speaker.options(num_cpus=0).remote() for _ in range(4)]
    for i, speaker in enumerate(speakers * 3):
        ray.get(speaker.speak.remote(i))
"""


def test_lines_of_several_workers_are_folded(driver):
    result = driver(SAME_LINES)
    lines = [line.partition(") ")[2] for line in result.stdout.splitlines()]
    # Those of one worker reach the driver in order, those of several need not.
    assert re.fullmatch(r"the same but for \d+", lines[0]) and len(lines) == 2, lines
    assert re.fullmatch(r"the same but for \d+ \[repeated 11x across cluster\]", lines[1]), lines
    assert result.stderr.count("RAY_DEDUP_LOGS=0") == 1


def test_folding_can_be_turned_off(driver):
    result = driver(SAME_LINES, env={"RAY_DEDUP_LOGS": "0"})
    assert len(result.stdout.splitlines()) == 12 and result.stderr == ""


def test_counted_lines_come_without_further_output(driver):
    process = driver.start(
        SAME_LINES + "\n    input()\n",
        env={"RAY_DEDUP_LOGS_AGG_WINDOW_S": "0.2"},
        stdin=-1,
    )
    total = 0
    while total < 12:
        line = process.stdout.readline()
        counted = re.search(r"\[repeated (\d+)x across cluster\]", line)
        total += int(counted[1]) if counted else 1
    assert total == 12
    process.communicate("\n", timeout=30)
    driver.clean()


def test_a_process_has_its_colour_on_a_terminal(driver):
    written = run_at_terminal(driver, SAME_LINES, env={"RAY_DEDUP_LOGS": "0"})
    prefixes = re.findall(r"(\x1b\[\d+m)\(Speaker pid=(\d+)\)\x1b\[0m ", written)
    assert len(prefixes) == 12
    # As many colours as processes, and one for each: their numbers follow each other.
    by_process = {}
    for colour, pid in prefixes:
        by_process.setdefault(pid, set()).add(colour)
    assert len(by_process) == 4 and all(len(colours) == 1 for colours in by_process.values())
    assert len(set.union(*by_process.values())) > 1


def test_without_colours_if_that_is_wanted(driver):
    assert "\x1b" not in run_at_terminal(driver, SAME_LINES, env={"NO_COLOR": "1"})


def test_junk_does_not_reach_a_terminal(driver):
    written = run_at_terminal(
        driver,
        """
        import sys
        import oxiray as ray
        ray.init(num_cpus=1, logging_level="error")

        @ray.remote
        def junk():
            sys.stdout.buffer.write(bytes(range(256)) * 4 + b"\\n")
            sys.stdout.buffer.write(b"\\x1b[2J\\x1b]0;title\\x07\\x1b[?1049hseen\\n")
            sys.stdout.buffer.write(b"no end")
            sys.stdout.buffer.flush()

        ray.get(junk.remote())
        """,
        env={"NO_COLOR": "1"},
    )
    lines = screen(written)  # which knows no other sequences
    assert re.fullmatch(r"\(pid=\d+\) seen", lines[-3]), lines
    assert re.fullmatch(r"\(pid=\d+\) no end", lines[-2]), lines


def test_a_line_of_100_mb_costs_the_driver_nothing(driver):
    result = driver(
        """
        import resource, sys
        import oxiray as ray
        ray.init(num_cpus=1, logging_level="error")

        @ray.remote
        def shout():
            piece = b"x" * (1 << 20)
            for _ in range(100):
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.write(b"end")
            sys.stdout.buffer.flush()

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ray.get(shout.remote())
        assert ray.get(ray.remote(lambda: 7).remote()) == 7
        ray.shutdown()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print("grown:", grown, file=sys.stderr)
        """
    )
    [grown] = re.findall(r"grown: (\d+)", result.stderr)
    assert int(grown) < 80_000, "kilobytes"
    shown = result.stdout.count("x")
    missing = sum(map(int, re.findall(r"(\d+) lines (?:that|were)", result.stdout + result.stderr)))
    # Cut into pieces of at most 64 KB; those that were left out have been counted.
    assert shown == 100 << 20 or missing > 0, (shown, missing)


def test_a_terminal_that_is_slow_at_the_end_loses_nothing(driver):
    process = driver.start(
        """
        import oxiray as ray
        ray.init(num_cpus=1, logging_level="error")

        @ray.remote
        def chatter():
            for i in range(20_000):
                print("line", i)

        ray.get(chatter.remote())
        """
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        if len(lines) % 2000 == 0:
            time.sleep(0.5)  # longer in all than is waited for a reader that does not read
    process.communicate(timeout=30)
    assert len(lines) == 20_000 and lines[-1].endswith("line 19999\n")
    driver.clean()


def test_characters_that_the_stream_does_not_know(driver):
    result = driver(
        """
        import oxiray as ray
        ray.init(num_cpus=1, logging_level="error")
        ray.get(ray.remote(lambda: print("grün", 7)).remote())
        """,
        env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert "gr\\xfcn 7" in result.stdout, result.stdout


def test_log_files_are_rotated(driver):
    driver(
        """
        import glob, os, time
        import oxiray as ray
        context = ray.init(num_cpus=1, logging_level="error", log_to_driver=False)

        @ray.remote
        def chatter():
            for i in range(10_000):
                print(f"line {i:10}")

        ray.get(chatter.remote())
        logs = context["session_dir"] + "/logs"

        def read():
            files = glob.glob(logs + "/worker-*.out*")
            parts = sorted(file for file in files if not file.endswith(".tasks"))
            try:
                return parts, "".join(open(part).read() for part in reversed(parts))
            except FileNotFoundError:  # renamed just now
                return parts, ""

        while not read()[1].endswith(f"line {9999:10}\\n"):
            time.sleep(0.01)
        # Nothing is written any more: a look while files are renamed may miss one.
        parts, text = read()
        assert [part[-2:] for part in parts] == ["ut", ".1", ".2"], parts
        # Each is a batch longer than it may be at most.
        assert all(os.path.getsize(part) <= 64_000 for part in parts)
        numbers = [int(line.split()[1]) for line in text.splitlines()]
        assert numbers == list(range(numbers[0], 10_000)), numbers[:3]
        """,
        env={"RAY_ROTATION_MAX_BYTES": "20000", "RAY_ROTATION_BACKUP_COUNT": "2"},
    )
