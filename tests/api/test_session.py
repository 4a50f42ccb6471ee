"""`init` and `shutdown`: arguments, what they return, doing them again."""

from __future__ import annotations

import logging
import os

import oxiray as ray
import pytest


def test_init_and_shutdown_again_and_again(fresh):
    for cpus in (1, 2, 3):
        fresh(num_cpus=cpus)
        assert ray.is_initialized()
        assert ray.cluster_resources()["CPU"] == cpus
        assert ray.get(ray.remote(lambda: 1).remote()) == 1
        ray.shutdown()
        assert not ray.is_initialized()


def test_a_function_works_in_the_next_session_too(fresh):
    value = [1]

    @ray.remote
    def f():
        return value

    fresh()
    assert ray.get(f.remote()) == [1]
    ray.shutdown()
    value.append(2)
    fresh()
    assert ray.get(f.remote()) == [1, 2]


def test_labels(fresh):
    fresh(labels={"zone": "a", "example.com/disk": "fast"})
    (node,) = ray.nodes()
    assert node["Labels"]["zone"] == "a" and node["Labels"]["example.com/disk"] == "fast"
    task = ray.remote(lambda: 1)
    assert ray.get(task.options(label_selector={"zone": "a"}).remote()) == 1
    elsewhere = task.options(label_selector={"zone": "b"}).remote()
    assert ray.wait([elsewhere], timeout=0.2) == ([], [elsewhere])


@pytest.mark.parametrize(
    "labels, says",
    [
        (["a"], "dict of strings"),
        ({"a b": "c"}, "a b"),
        ({"a": 1}, "'a' must be a string"),
        ({"a": "b c"}, "b c"),
        ({"ray.io/node-id": "a"}, "reserved"),
    ],
    ids=str,
)
def test_wrong_labels(fresh, labels, says):
    with pytest.raises((TypeError, ValueError), match=f"init.labels=.*{says}"):
        fresh(labels=labels)


def test_a_mistyped_argument_has_a_hint(fresh):
    for written, meant in [("adress", "address"), ("num_cpu", "num_cpus"), ("label", "labels")]:
        with pytest.raises(RuntimeError, match=f"{written}. Did you mean '{meant}'"):
            fresh(**{written: 1})


def test_what_ends_a_program_says_to_copy(driver):
    pytest.importorskip("numpy")
    program = driver(
        """
        import numpy
        import oxiray as ray

        ray.init(num_cpus=1)
        ray.get(ray.put(numpy.zeros(9)))[0] = 1
        """,
        check=False,
    )
    assert program.returncode == 1
    assert "is read-only\n(Arrays that were passed or got" in program.stderr
    assert "copy() gives one to write to" in program.stderr


def test_shutdown_without_a_session_and_twice(fresh):
    ray.shutdown()
    ray.shutdown()
    fresh()
    ray.shutdown()
    ray.shutdown()


def test_the_context(fresh):
    context = fresh()
    assert context.ray_version == "2.60.0"
    assert os.path.isdir(context["session_dir"])
    assert context.address_info["node_id"] == ray.nodes()[0]["NodeID"]
    assert "<table>" in context._repr_html_()
    assert "RayContext(" in repr(context)
    context.disconnect()
    assert not ray.is_initialized()


def test_the_table_is_safe_whatever_is_in_it():
    from oxiray._notebook_table import table

    html = table({"<i>name": "<script>1</script>"}, 'http://127.0.0.1:8265/?token="><script>')
    assert "<script>" not in html and "<i>" not in html
    assert 'href="http://127.0.0.1:8265/?token=&quot;&gt;&lt;script&gt;"' in html
    assert "not started" in table({}, "")


def test_as_a_context_manager(fresh):
    with fresh() as context:
        directory = context["session_dir"]
        assert ray.get(ray.put(1)) == 1
    assert not ray.is_initialized()
    assert not os.path.exists(directory)


def test_arguments_of_older_and_newer_programs(fresh):
    fresh(
        include_webui=False,
        include_dashboard=False,
        dashboard_port=8265,
        log_to_driver=False,
        namespace="space",
        configure_logging=False,
    )
    assert ray.get_runtime_context().namespace == "space"


def test_more_cpus_than_cores(fresh, meeting):
    count = 4 * (os.cpu_count() or 1)
    fresh(num_cpus=count)
    together = meeting(count)

    @ray.remote
    def attend(i):
        return together.attend(i)

    assert all(ray.get([attend.remote(i) for i in range(count)]))


def test_the_session_directory_is_private(fresh):
    directory = fresh()["session_dir"]
    assert os.stat(directory).st_mode & 0o077 == 0
    assert os.path.isdir(f"{directory}/logs")


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"num_cpus": -1}, ValueError, "num_cpus"),
        ({"num_cpus": 1.5}, ValueError, "num_cpus"),
        ({"num_cpus": "two"}, TypeError, "num_cpus"),
        ({"num_gpus": -1}, ValueError, "num_gpus"),
        ({"resources": {"x": -1}}, ValueError, "x"),
        ({"resources": {"GPU": 1}}, ValueError, "num_gpus"),
        ({"resources": ["x"]}, TypeError, "resources"),
        ({"object_store_memory": 1000}, ValueError, "object_store_memory"),
        ({"object_store_memory": 1 << 60}, ValueError, "object_store_memory"),
        ({"object_store_memory": "1GB"}, TypeError, "object_store_memory"),
        ({"namespace": 5}, TypeError, "namespace"),
        ({"logging_level": "loud"}, ValueError, "logging_level"),
        ({"runtime_env": {"pipe": ["x"]}}, ValueError, "runtime_env"),
        ({"address": "10.0.0.1:6379"}, ConnectionError, "address"),
        ({"address": 5}, TypeError, "address"),
        ({"no_such": 1, "nor_this": 2}, RuntimeError, "no_such, nor_this|nor_this"),
    ],
    ids=str,
)
def test_wrong_arguments_start_nothing(arguments, error, says):
    ray.shutdown()
    with pytest.raises(error, match=says):
        ray.init(**arguments)
    assert not ray.is_initialized()
    base = os.environ["OXIRAY_TMPDIR"]
    assert not [name for name in os.listdir(base) if name.startswith("session_")]


def test_the_start_is_announced_at_info_only(driver):
    loud = driver("import oxiray as ray; ray.init(num_cpus=1)")
    assert "Started a local instance" in loud.stderr
    assert loud.stdout == ""


def test_logging_level_silences_the_start(driver):
    quiet = driver(f"import oxiray as ray; ray.init(num_cpus=1, logging_level={logging.ERROR})")
    assert quiet.stderr == "" and quiet.stdout == ""


def test_a_missing_program_is_said(driver):
    result = driver(
        "import oxiray as ray; ray.init()", env={"OXIRAY_OXIRAYD": "/no/such/file"}, check=False
    )
    assert result.returncode != 0 and "/no/such/file" in result.stderr


def test_a_forked_child_does_not_end_the_session(driver):
    driver(
        """
        import os, sys
        import oxiray as ray
        ray.init(num_cpus=1)
        pid = os.fork()
        if pid == 0:
            sys.exit(0)  # runs the exit handlers
        os.waitpid(pid, 0)
        assert ray.get(ray.remote(lambda: 5).remote()) == 5
        """
    )


def test_threads_that_all_use_it_first_share_one_session(driver):
    result = driver(
        """
        import threading
        import oxiray as ray

        @ray.remote
        def same(x):
            return x

        results = []
        threads = [
            threading.Thread(target=lambda i=i: results.append(ray.get(same.remote(i))))
            for i in range(8)
        ]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(sorted(results))
        """
    )
    assert str(list(range(8))) in result.stdout


def test_threads_go_on_while_sessions_come_and_go(driver):
    driver(
        """
        import threading
        import oxiray as ray

        @ray.remote
        def same(x):
            return x

        stop, wrong = threading.Event(), []
        used = [threading.Event() for _ in range(3)]

        def use(event):
            while not stop.is_set():
                try:
                    assert ray.get(same.remote(5)) == 5
                    event.set()
                except (ray.exceptions.RayError, RuntimeError) as error:
                    if "session" not in str(error):
                        wrong.append(error)

        ray.init(num_cpus=2)
        threads = [threading.Thread(target=use, args=(event,)) for event in used]
        for thread in threads:
            thread.start()
        for _ in range(4):
            for event in used:  # each has had a value since the last time
                event.clear()
                assert event.wait(30)
            ray.shutdown()
            ray.init(num_cpus=2, ignore_reinit_error=True)
        stop.set()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        assert not wrong, wrong
        """
    )


def test_an_interrupt_anywhere_in_init_leaves_nothing(driver):
    """At each line of ours in turn, until init() gets through."""
    driver(
        """
        import os, sys
        import oxiray as ray
        from oxiray import _session
        base = os.environ["OXIRAY_TMPDIR"]

        def interrupt_at(line):
            seen = 0
            def trace(frame, event, argument):
                nonlocal seen
                if frame.f_code.co_filename != _session.__file__:
                    return None
                if event == "line":
                    seen += 1
                    if seen == line:
                        raise KeyboardInterrupt
                return trace
            return trace

        line, whole, done = 0, 0, False
        while not done:
            line += 1
            sys.settrace(interrupt_at(line))
            try:
                ray.init(num_cpus=1, logging_level="error")
                done = True
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(None)
            if not done:
                if ray.is_initialized():  # on its way out, after all was done: a whole session
                    assert ray.get(ray.put(line)) == line
                    whole += 1
                    ray.shutdown()
                assert not ray.is_initialized(), line
                left = os.listdir(base)
                assert not left, (line, left)
        assert line > 20 and whole <= 1, (line, whole)
        assert ray.get(ray.remote(lambda: 5).remote()) == 5
        """
    )


def test_an_interrupted_shutdown_can_be_done_again(driver):
    driver(
        """
        import os, sys
        import oxiray as ray
        from oxiray import _session

        def interrupt_at(line):
            seen = 0
            def trace(frame, event, argument):
                nonlocal seen
                if frame.f_code.co_filename != _session.__file__:
                    return None
                if event == "line":
                    seen += 1
                    if seen == line:
                        raise KeyboardInterrupt
                return trace
            return trace

        line, done = 0, False
        while not done:
            line += 1
            directory = ray.init(num_cpus=1, logging_level="error")["session_dir"]
            sys.settrace(interrupt_at(line))
            try:
                ray.shutdown()
                done = True
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(None)
            ray.shutdown()
            assert not ray.is_initialized() and not os.path.exists(directory), line
        assert line > 5
        """
    )


@pytest.mark.parametrize("how", ["_temp_dir", "OXIRAY_TMPDIR"])
def test_a_path_may_be_longer_than_that_of_a_socket(how, tmp_path, monkeypatch):
    ray.shutdown()
    parent = str(tmp_path / ("x" * 100))
    if how == "OXIRAY_TMPDIR":
        monkeypatch.setenv(how, parent)
    context = ray.init(**({} if how == "OXIRAY_TMPDIR" else {how: parent}))
    assert context["session_dir"].startswith(parent)
    assert ray.get(ray.remote(lambda: 5).remote()) == 5
    ray.shutdown()
    assert os.listdir(parent) == []
