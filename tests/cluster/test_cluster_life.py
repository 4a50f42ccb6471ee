"""What outlives nodes, creators and drivers in a cluster, and what people are told meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.cluster_utils import Cluster
from oxiray.exceptions import ActorDiedError, ObjectLostError, OwnerDiedError
from oxiray.experimental import internal_kv
from oxiray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

MILLION = 1_000_000


@pytest.fixture
def cluster():
    """A head with one CPU, and this program connected."""
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.connect(namespace="life")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def run_driver(cluster, program):
    """Runs a driver to its end: what it printed."""
    start = f"import oxiray as ray\nray.init(address={cluster.address!r}, namespace='life')\n"
    done = subprocess.run(
        [sys.executable, "-c", start + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def oxiray(*arguments):
    program = os.path.join(os.path.dirname(ray.__file__), "_bin", "oxiray")
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=30, check=False
    )


class TestObjectsOfANodeThatIsGone:
    def test_are_made_again_arguments_first(self, cluster):
        node = cluster.add_node(num_cpus=2, resources={"there": 2})

        @ray.remote(resources={"there": 1})
        def make(number):
            return np.full(MILLION, number)

        @ray.remote(resources={"there": 1})
        def double(array):
            return array * 2

        made = [make.remote(number) for number in range(3)]
        doubled = [double.remote(ref) for ref in made]
        ray.wait(doubled, num_returns=3, timeout=60, fetch_local=False)
        del made
        cluster.add_node(num_cpus=2, resources={"there": 2})
        cluster.remove_node(node, allow_graceful=False)
        assert [int(ray.get(ref, timeout=60)[0]) for ref in doubled] == [0, 2, 4]

    def test_are_lost_if_their_task_may_not_run_again(self, cluster):
        node = cluster.add_node(num_cpus=1, resources={"there": 1})

        @ray.remote(resources={"there": 1}, max_retries=0)
        def make():
            return np.ones(MILLION)

        ref = make.remote()
        ray.wait([ref], timeout=60, fetch_local=False)
        cluster.remove_node(node, allow_graceful=False)
        with pytest.raises(ObjectLostError, match="left the cluster"):
            ray.get(ref, timeout=60)

    def test_are_made_again_for_whoever_borrows_them(self, cluster):
        node = cluster.add_node(num_cpus=1, resources={"there": 1})

        @ray.remote(resources={"there": 1})
        def make():
            return np.full(MILLION, 7)

        @ray.remote(num_cpus=0)
        class Holder:
            def hold(self, refs):
                self.ref = refs[0]

            def look(self):
                return int(ray.get(self.ref)[0])

        holder = Holder.options(resources={"node:__internal_head__": 0.001}).remote()
        ref = make.remote()
        ray.get(holder.hold.remote([ref]), timeout=60)
        ray.wait([ref], timeout=60, fetch_local=False)
        cluster.add_node(num_cpus=1, resources={"there": 1})
        cluster.remove_node(node, allow_graceful=False)
        assert ray.get(holder.look.remote(), timeout=60) == 7

    def test_what_was_got_before_stays(self, cluster):
        node = cluster.add_node(num_cpus=1, resources={"there": 1})

        @ray.remote(resources={"there": 1})
        def make():
            return np.arange(MILLION)

        value = ray.get(make.remote(), timeout=60)
        cluster.remove_node(node, allow_graceful=False)
        wait_until(lambda: len([n for n in ray.nodes() if n["Alive"]]) == 1)
        assert int(value.sum()) == sum(range(MILLION))


def test_values_outlive_the_connection_of_their_driver(cluster):
    value = ray.get(ray.put(np.arange(MILLION)))
    ray.shutdown()
    cluster.connect()
    # Others use the memory that this process looked at.
    for _ in range(30):
        ray.put(np.zeros(5 * MILLION, dtype=np.uint8))
    assert int(value.sum()) == sum(range(MILLION))


class Holder:
    def ping(self):
        pass


class TestADetachedActor:
    PROGRAM = """
        @ray.remote(max_restarts=-1, max_task_retries=-1, resources={"there": 1})
        class Counter:
            def __init__(self, start):
                self.start = start

            def get(self):
                import os
                return self.start, os.getpid(), ray.get_runtime_context().get_node_id()

        counter = Counter.options(name="counter", lifetime="detached").remote(41)
        print(ray.get(counter.get.remote())[1])
    """

    def test_is_made_again_without_its_creator(self, cluster):
        node = cluster.add_node(num_cpus=1, resources={"there": 1})
        pid = int(run_driver(cluster, self.PROGRAM))
        counter = ray.get_actor("counter")
        os.kill(pid, signal.SIGKILL)
        start, second, where = ray.get(counter.get.remote(), timeout=60)
        assert (start, where) == (41, node.node_id) and second != pid
        other = cluster.add_node(num_cpus=1, resources={"there": 1})
        cluster.remove_node(node, allow_graceful=False)
        start, _, where = ray.get(counter.get.remote(), timeout=60)
        assert (start, where) == (41, other.node_id)
        ray.kill(counter)
        wait_until(lambda: not named("counter"))

    WAITS = """
        import numpy as np

        @ray.remote(num_cpus=1)
        class Waits:
            def __init__(self, *values):
                self.sum = sum(int(np.sum(value)) for value in values)

            def get(self):
                return self.sum

        large = np.ones(300_000)
        detached = {"lifetime": "detached", "resources": {"there": 1}}
        Waits.options(name="small", num_cpus=0, **detached).remote(1, ray.put(2))
        Waits.options(name="large", num_cpus=0, **detached).remote(large, ray.put(large))
        Waits.options(name="nowhere", num_gpus=1, lifetime="detached").remote(4)
    """

    def test_waits_for_room_without_its_creator(self, cluster):
        cluster.add_node(num_cpus=1, resources={"there": 1})
        holder = ray.remote(num_cpus=1, resources={"there": 1})(Holder).remote()
        ray.get(holder.ping.remote(), timeout=60)
        run_driver(cluster, self.WAITS)
        small, large, nowhere = map(ray.get_actor, ("small", "large", "nowhere"))
        ready, _ = ray.wait([small.get.remote(), large.get.remote()], timeout=0.2)
        assert not ready, "somebody else has the room"
        ray.kill(holder)
        assert ray.get(small.get.remote(), timeout=60) == 3
        ray.kill(small)
        assert ray.get(large.get.remote(), timeout=60) == 600_000
        cluster.add_node(num_cpus=1, num_gpus=1)
        assert ray.get(nowhere.get.remote(), timeout=60) == 4
        for actor in (large, nowhere):
            ray.kill(actor)
        wait_until(lambda: not any(map(named, ("small", "large", "nowhere"))))

    LARGE = """
        import os

        import numpy as np

        @ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
        class Large:
            def __init__(self, array, put, boxed, *, text):
                self.sums = float(array.sum()), int(put.sum()), len(text)
                self.boxed = boxed

            def get(self):
                return self.sums, os.getpid()

            def look(self):
                return ray.get(self.boxed[0])

        put = ray.put(np.ones(MEGABYTES << 17))
        boxed = [ray.put(5)]
        arguments = np.full(MEGABYTES << 17, 2.0), put, boxed
        large = Large.options(name="large", lifetime="detached")
        large = large.remote(*arguments, text="x" * 300_000)
        print(ray.get(large.get.remote())[1])
    """

    def test_has_its_large_arguments_without_its_creator(self, cluster):
        pid = int(run_driver(cluster, self.LARGE.replace("MEGABYTES", "10")))
        large = ray.get_actor("large")
        whole = 2.0 * (10 << 17), 10 << 17, 300_000
        for _ in range(2):
            os.kill(pid, signal.SIGKILL)
            sums, second = ray.get(large.get.remote(), timeout=60)
            assert sums == whole and second != pid
            pid = second
        # A reference inside an argument is what it was: its value went with its owner.
        with pytest.raises(OwnerDiedError):
            ray.get(large.look.remote(), timeout=60)
        ray.kill(large)
        wait_until(lambda: not named("large"))

    def test_says_so_if_they_are_too_large_to_be_kept(self, cluster):
        pid = int(run_driver(cluster, self.LARGE.replace("MEGABYTES", "40")))
        large = ray.get_actor("large")
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ActorDiedError, match=r"the process that made (it|this actor)"):
            ray.get(large.get.remote(), timeout=60)


def named(name):
    try:
        return ray.get_actor(name)
    except ValueError:
        return None


class TestKeysAndValues:
    def use(self):
        assert internal_kv._internal_kv_put("a", "1") is False
        assert internal_kv._internal_kv_put(b"a", b"2", overwrite=False) is True
        assert internal_kv._internal_kv_get("a") == b"1"
        assert internal_kv._internal_kv_get("a", namespace="other") is None
        internal_kv._internal_kv_put("ab", b"\0")
        assert internal_kv._internal_kv_list("a") == [b"a", b"ab"]
        assert internal_kv._internal_kv_del("a", del_by_prefix=True) == 2
        assert not internal_kv._internal_kv_exists("a")
        internal_kv._internal_kv_put("a", b"x" * 3_000_000)
        assert internal_kv._internal_kv_get("a") == b"x" * 3_000_000
        assert internal_kv._internal_kv_list("a") == [b"a"]
        internal_kv._internal_kv_put("a", b"small again")
        assert internal_kv._internal_kv_get("a") == b"small again"
        assert internal_kv._internal_kv_del("a") == 1
        with pytest.raises(TypeError, match="key"):
            internal_kv._internal_kv_get(1)

    def test_in_a_cluster(self, cluster):
        self.use()
        internal_kv._internal_kv_put("kept", "yes")
        program = """
            from oxiray.experimental import internal_kv
            print(internal_kv._internal_kv_get("kept").decode())
        """
        assert run_driver(cluster, program) == "yes"

    def test_alone(self):
        ray.shutdown()
        ray.init(num_cpus=1)
        self.use()


class TestWhy:
    def test_a_gpu_that_nobody_has(self, cluster):
        @ray.remote(num_gpus=1)
        def wants_gpu():
            pass

        @ray.remote
        def wants_that(value):
            pass

        first = wants_gpu.remote()
        second = wants_that.remote(first)
        said = wait_until(lambda: oxiray("why", first.hex()).stdout)
        assert "wants_gpu" in said and "no node has a GPU" in said
        said = oxiray("why", second.hex()).stdout
        assert "waits for its argument, to be returned by wants_gpu" in said
        assert "no node has a GPU" in said, "to the end of the chain"
        wait_until(lambda: "no node has a GPU" in oxiray("status").stdout)

    def test_a_node_that_left(self, cluster):
        node = cluster.add_node(num_cpus=1, resources={"there": 1})

        @ray.remote(resources={"there": 1})
        def stays():
            pass

        ray.get(stays.remote(), timeout=60)
        cluster.remove_node(node)
        ref = stays.remote()
        said = wait_until(lambda: "no node has any there" in (oxiray("why", ref.hex()).stdout))
        assert said
        strategy = NodeAffinitySchedulingStrategy(node.node_id, soft=False)
        with pytest.raises(ray.exceptions.TaskUnschedulableError, match="has left the cluster"):
            ray.get(stays.options(scheduling_strategy=strategy).remote(), timeout=60)

    def test_what_nobody_knows(self, cluster):
        done = oxiray("why", "nothing_of_that_name")
        assert done.returncode == 1 and "nothing_of_that_name" in done.stderr


class TestSeveralJobs:
    def test_a_long_queue_does_not_starve_another_job(self, cluster):
        """A hundred thousand tasks of one driver wait; ten of another are done meanwhile."""

        @ray.remote
        def short():
            time.sleep(0.01)

        queue = [short.remote() for _ in range(100_000)]
        program = """
            @ray.remote
            def ten(number):
                return number

            print(ray.get([ten.remote(number) for number in range(10)], timeout=50)[-1])
        """
        assert run_driver(cluster, program) == "9"
        ready, _ = ray.wait(queue, num_returns=len(queue), timeout=0)
        assert len(ready) < len(queue) // 2, "the other job was not the one that waited"
        del queue

    def test_what_is_urgent_goes_first(self, cluster, tmp_path):
        order = tmp_path / "order"

        @ray.remote
        def note(name):
            with open(order, "a") as file:
                file.write(f"{name}\n")

        @ray.remote
        def hold(begun, path):
            open(begun, "w").close()
            while not os.path.exists(path):
                time.sleep(0.01)

        # That no CPU is free is not enough: it may be the last job's that has it. And of an urgency
        # of its own: a lease goes on with what is as urgent until it is asked back.
        held = hold.options(priority=9).remote(str(tmp_path / "begun"), str(tmp_path / "go"))
        wait_until((tmp_path / "begun").exists)
        refs = [note.options(priority=-1).remote("last")]
        refs.append(note.remote("middle"))
        refs.append(note.options(priority=5).remote("first"))
        # One sentence for each urgency: then the node knows all three.
        wait_until(lambda: len(ray._native.cluster_view()["waiting"]) == 3)
        (tmp_path / "go").touch()
        ray.get([held, *refs], timeout=60)
        assert order.read_text().split() == ["first", "middle", "last"]


def test_lines_of_workers_say_where_they_come_from(cluster, capfd):
    cluster.add_node(num_cpus=1, resources={"there": 1})

    @ray.remote(resources={"there": 1})
    def speak():
        print("from over there")

    ray.get(speak.remote(), timeout=60)
    seen = []

    def look():
        seen.append(capfd.readouterr().out)
        return "from over there" in "".join(seen)

    wait_until(look)
    assert "ip=127.0.0.1" in "".join(seen)


def test_threads_get_the_same_object_of_another_node_once(cluster):
    cluster.add_node(num_cpus=1, resources={"there": 1})

    @ray.remote(resources={"there": 1})
    def make():
        return np.arange(10 * MILLION)

    ref = make.remote()
    sums = []
    threads = [
        threading.Thread(target=lambda: sums.append(int(ray.get(ref)[-1]))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [10 * MILLION - 1] * 8
