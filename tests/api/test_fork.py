"""Forks of the driver: a child has nothing of the session, and harms nothing of it."""

from __future__ import annotations


def test_a_child_does_not_touch_the_parents_objects(driver):
    driver(
        """
        import os, sys
        import numpy as np
        import oxiray as ray
        ray.init(num_cpus=2, logging_level="error")
        refs = [ray.put(np.full(200_000, i)) for i in range(3)]

        @ray.remote
        def same(x):
            return x

        pid = os.fork()
        if pid == 0:
            try:
                ray.get(refs[0])
            except ray.exceptions.RaySystemError:
                refs.clear()
                sys.exit(0)
            sys.exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        more = [ray.put(np.full(200_000, 100 + i)) for i in range(3)]
        assert [int(ray.get(ref)[0]) for ref in refs] == [0, 1, 2]
        assert ray.get([same.remote(i) for i in range(5)]) == list(range(5))
        """
    )


def test_a_child_can_have_a_session_of_its_own(driver):
    result = driver(
        """
        import os
        import oxiray as ray
        ray.init(num_cpus=1, logging_level="error")

        @ray.remote
        def add(x):
            return x + 1

        assert ray.get(add.remote(1)) == 2
        pid = os.fork()
        if pid == 0:
            assert not ray.is_initialized()
            ray.init(num_cpus=1, logging_level="error")
            print("child", ray.get(add.remote(10)), flush=True)
            ray.shutdown()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        print("parent", ray.get(add.remote(2)), flush=True)
        """
    )
    assert "child 11" in result.stdout and "parent 3" in result.stdout


def test_a_pool_of_forked_processes_in_the_driver(driver):
    driver(
        """
        import multiprocessing
        import oxiray as ray
        ray.init(num_cpus=1, logging_level="error")
        refs = [ray.put(bytes([i]) * 300_000) for i in range(4)]

        def clear(i):
            refs.clear()
            return i

        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(clear, range(8)) == list(range(8))
        new = [ray.put(b"n" * 300_000) for _ in range(4)]
        assert [ray.get(ref)[0] for ref in refs] == [0, 1, 2, 3]
        """
    )


def test_a_forked_child_that_returns_from_its_task(driver):
    result = driver(
        """
        import os
        import oxiray as ray
        ray.init(num_cpus=1, logging_level="error")

        @ray.remote
        def split():
            return "child" if os.fork() == 0 else "parent"

        print([ray.get(split.remote(), timeout=20) for _ in range(3)])
        """
    )
    assert "['parent', 'parent', 'parent']" in result.stdout


def test_a_child_of_the_driver_starts_no_session_unasked(driver):
    driver(
        """
        import multiprocessing, os
        import oxiray as ray
        ray.init(num_cpus=1, logging_level="error")
        ref = ray.put(1)

        @ray.remote
        def add(x):
            return x + 1

        def uses_it(way):
            try:
                return ways[way]()
            except ray.exceptions.RaySystemError as error:
                return str(error)

        ways = [lambda: ray.put(2), lambda: add.remote(1), ray.nodes, lambda: ray.get(ref)]
        context = multiprocessing.get_context("fork")
        with context.Pool(1) as pool:
            *unasked, inherited = pool.map(uses_it, range(len(ways)))
        for text in unasked:
            assert f"forked from process {os.getpid()}" in text and "init()" in text, text
        assert str(ref) in inherited and "that this one was forked from" in inherited, inherited

        def child_of_child():
            pid = os.fork()
            if pid == 0:
                os._exit("forked from process" not in uses_it(0))
            os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

        def with_its_own():
            ray.init(num_cpus=1, logging_level="error")
            done = ray.get(add.remote(1)) == 2 and "that this one was forked from" in uses_it(3)
            ray.shutdown()
            os._exit(not done)

        for target in (child_of_child, with_its_own):
            child = context.Process(target=target)
            child.start()
            child.join(30)
            assert child.exitcode == 0, target
        assert ray.get(add.remote(ref)) == 2
        """
    )


def test_a_child_of_a_task_starts_no_session_unasked(driver):
    result = driver(
        """
        import os
        import oxiray as ray
        ray.init(num_cpus=1, logging_level="error")

        @ray.remote
        def forks(ref):
            reader, writer = os.pipe()
            if os.fork() == 0:
                try:
                    ray.put(1)
                except ray.exceptions.RaySystemError as error:
                    os.write(writer, str(error).encode())
                os._exit(0)
            os.close(writer)
            with open(reader) as said:
                return said.read(), os.getpid()

        said, pid = ray.get(forks.remote(ray.put(1)), timeout=30)
        print(said)
        assert f"forked from process {pid}" in said, said
        """
    )
    assert "session of its own" in result.stdout
