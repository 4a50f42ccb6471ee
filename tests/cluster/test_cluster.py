"""Several nodes: where things run, what travels between them, and what happens when one goes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections import Counter

import numpy as np
import oxiray as ray
import pytest
from conftest import processes_under, wait_until
from oxiray.cluster_utils import Cluster
from oxiray.exceptions import (
    ActorDiedError,
    ActorUnschedulableError,
    RayError,
    TaskUnschedulableError,
)
from oxiray.util.scheduling_strategies import (
    DoesNotExist,
    Exists,
    In,
    NodeAffinitySchedulingStrategy,
    NodeLabelSchedulingStrategy,
    NotIn,
)

HUNDRED_MB = 100_000_000


@pytest.fixture(scope="module")
def three():
    """A head and two more, and this program connected."""
    ray.shutdown()
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 2,
            "labels": {"region": "eu"},
            "object_store_memory": 400 * 2**20,
        },
    )
    cluster.a = cluster.add_node(
        num_cpus=2,
        resources={"a": 2},
        labels={"region": "us", "disk": "fast"},
        object_store_memory=400 * 2**20,
    )
    cluster.b = cluster.add_node(
        num_cpus=2, resources={"b": 2}, labels={"region": "us"}, object_store_memory=400 * 2**20
    )
    cluster.connect(namespace="tests")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def growing():
    """A cluster of the test's own, with a head of one CPU."""
    ray.shutdown()
    cluster = Cluster(initialize_head=True, connect=True)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@ray.remote
def where(*_):
    return ray.get_runtime_context().get_node_id()


@ray.remote
class Place:
    def __init__(self, value=None):
        self.value = value

    def where(self):
        return ray.get_runtime_context().get_node_id()

    def get(self):
        return self.value

    def set(self, value):
        self.value = value
        return value

    def sum(self, array):
        return int(array.sum())

    def pid(self):
        return os.getpid()


def at(node, soft=False):
    return NodeAffinitySchedulingStrategy(node.node_id, soft=soft)


class TestWhatThereIs:
    def test_nodes(self, three):
        nodes = {node["NodeID"]: node for node in ray.nodes()}
        assert set(nodes) == {node.node_id for node in three.list_all_nodes()}
        assert all(node["Alive"] and node["alive"] for node in nodes.values())
        a = nodes[three.a.node_id]
        assert a["Resources"]["a"] == 2 and a["Resources"]["CPU"] == 2
        assert a["Labels"]["region"] == "us" and a["Labels"]["disk"] == "fast"
        assert a["NodeManagerPort"] == three.a.node_manager_port
        assert a["NodeManagerAddress"] == "127.0.0.1" and a["NodeManagerHostname"]

    def test_resources_are_those_of_all(self, three):
        total = ray.cluster_resources()
        assert (total["CPU"], total["a"], total["b"]) == (6, 2, 2)
        assert total["node:__internal_head__"] == 1
        wait_until(lambda: ray.available_resources().get("CPU") == 6)

    def test_a_task_knows_its_node(self, three):
        labels = ray.remote(resources={"a": 1})(lambda: ray.get_runtime_context().get_node_labels())
        found = ray.get(labels.remote())
        assert found["disk"] == "fast" and found["ray.io/node-id"] == three.a.node_id

    def test_the_job_is_the_same_everywhere(self, three):
        job = ray.remote(lambda: ray.get_runtime_context().get_job_id())
        jobs = ray.get([job.options(resources={name: 1}).remote() for name in "ab"])
        assert set(jobs) == {ray.get_runtime_context().get_job_id()}


class TestWhereTasksRun:
    def test_where_their_resources_are(self, three):
        on_a = [where.options(resources={"a": 1}).remote() for _ in range(20)]
        on_b = [where.options(resources={"b": 1}).remote() for _ in range(20)]
        assert set(ray.get(on_a)) == {three.a.node_id}
        assert set(ray.get(on_b)) == {three.b.node_id}

    def test_more_than_one_node_can_hold_goes_elsewhere(self, three, meeting):
        meeting = meeting(6)
        attend = ray.remote(lambda name: (meeting.attend(name), where_am_i()))
        done = ray.get([attend.remote(i) for i in range(6)], timeout=60)
        assert all(met for met, _ in done)
        assert {node for _, node in done} == {node.node_id for node in three.list_all_nodes()}

    def test_spread(self, three, meeting):
        # They run at the same time, on nodes that all have room for them.
        meeting = meeting(6)
        wait_until(lambda: ray.available_resources().get("CPU") == 6)
        attend = ray.remote(lambda name: (meeting.attend(name), where_am_i())[1])
        attend = attend.options(scheduling_strategy="SPREAD", num_cpus=0.5)
        nodes = ray.get([attend.remote(i) for i in range(6)], timeout=60)
        assert sorted(Counter(nodes).values()) == [2, 2, 2]

    @pytest.mark.parametrize("which", [0, 1, 2])
    def test_at_a_node(self, three, which):
        node = three.list_all_nodes()[which]
        refs = [where.options(scheduling_strategy=at(node)).remote() for _ in range(10)]
        assert set(ray.get(refs)) == {node.node_id}

    def test_at_a_node_that_is_not_there(self, three):
        nowhere = ray.NodeID.from_random().hex()
        hard = NodeAffinitySchedulingStrategy(nowhere, soft=False)
        with pytest.raises(TaskUnschedulableError):
            ray.get(where.options(scheduling_strategy=hard).remote(), timeout=30)
        soft = NodeAffinitySchedulingStrategy(nowhere, soft=True)
        assert ray.get(where.options(scheduling_strategy=soft).remote(), timeout=30)

    def test_actors_at_a_node_that_is_not_there(self, three):
        nowhere = NodeAffinitySchedulingStrategy(ray.NodeID.from_random().hex(), soft=False)
        place = Place.options(scheduling_strategy=nowhere).remote()
        with pytest.raises(ActorUnschedulableError, match="cannot be met"):
            ray.get(place.where.remote(), timeout=30)

    @pytest.mark.parametrize(
        ("selector", "expected"),
        [
            ({"region": "eu"}, {"head"}),
            ({"region": "!eu"}, {"a", "b"}),
            ({"region": "in(us,asia)"}, {"a", "b"}),
            ({"region": "!in(us,asia)"}, {"head"}),
            ({"region": "us", "disk": "fast"}, {"a"}),
        ],
        ids=str,
    )
    def test_by_labels(self, three, selector, expected):
        nodes = {"head": three.head_node, "a": three.a, "b": three.b}
        refs = [where.options(label_selector=selector).remote() for _ in range(10)]
        found = set(ray.get(refs, timeout=30))
        assert found and found <= {nodes[name].node_id for name in expected}

    @pytest.mark.parametrize(
        ("selector", "fallbacks", "expected"),
        [
            ({"disk": "fast"}, [{"region": "eu"}], "a"),
            ({"region": "asia"}, [{"disk": "slow"}, {"region": "us", "disk": "!fast"}, {}], "b"),
            ({"region": "asia"}, [{"region": "eu"}, {"disk": "fast"}], "head"),
        ],
        ids=str,
    )
    def test_by_labels_that_stand_in_for_others(self, three, selector, fallbacks, expected):
        node = {"head": three.head_node, "a": three.a, "b": three.b}[expected]
        wait_until(lambda: ray.available_resources().get("CPU") == 6)
        fallbacks = [{"label_selector": fallback} for fallback in fallbacks]
        options = {"label_selector": selector, "fallback_strategy": fallbacks}
        place = Place.options(**options).remote()
        places = [where.options(**options).remote(), place.where.remote()]
        assert ray.get(places, timeout=30) == 2 * [node.node_id]

    @pytest.mark.parametrize(
        ("hard", "soft", "expected"),
        [
            ({"region": In("us")}, {"disk": Exists()}, {"a"}),
            ({"disk": DoesNotExist()}, {"region": NotIn("eu")}, {"b"}),
            ({"disk": Exists()}, {"region": In("asia")}, {"a"}),
        ],
        ids=str,
    )
    def test_by_label_strategies(self, three, hard, soft, expected):
        nodes = {"head": three.head_node, "a": three.a, "b": three.b}
        strategy = NodeLabelSchedulingStrategy(hard, soft=soft)
        # What is only preferred is not waited for.
        wait_until(lambda: ray.available_resources().get("CPU") == 6)
        found = ray.get(where.options(scheduling_strategy=strategy).remote(), timeout=30)
        assert found in {nodes[name].node_id for name in expected}


def where_am_i():
    return ray.get_runtime_context().get_node_id()


class TestActors:
    @pytest.mark.parametrize("which", [0, 1, 2])
    def test_at_a_node(self, three, which):
        node = three.list_all_nodes()[which]
        place = Place.options(scheduling_strategy=at(node)).remote(which)
        assert ray.get(place.where.remote()) == node.node_id
        assert ray.get([place.set.remote(i) for i in range(100)]) == list(range(100))

    def test_handles_travel(self, three):
        place = Place.options(resources={"a": 1}).remote()

        @ray.remote(resources={"b": 1})
        def use(place):
            return ray.get(place.set.remote(7))

        assert ray.get(use.remote(place)) == 7
        assert ray.get(place.get.remote()) == 7

    def test_an_actor_of_another_node_ends_with_its_handles(self, three):
        place = Place.options(resources={"a": 2}).remote()
        ray.get(place.pid.remote())
        wait_until(lambda: "a" not in ray.available_resources())
        del place
        wait_until(lambda: ray.available_resources().get("a") == 2)

    def test_killed(self, three):
        place = Place.options(resources={"a": 1}).remote()
        ray.get(place.pid.remote())
        ray.kill(place)

        def is_dead():
            try:
                ray.get(place.pid.remote(), timeout=30)
            except ActorDiedError:
                return True

        # A call just after it may still be answered: calls go to the actor, kill() does not.
        wait_until(is_dead)

    def test_started_again(self, three):
        place = Place.options(resources={"a": 1}, max_restarts=1, max_task_retries=-1).remote()
        pid = ray.get(place.pid.remote())
        os.kill(pid, 9)
        again = wait_until(lambda: ray.get(place.pid.remote(), timeout=30) != pid)
        assert again

    def test_an_error_in_the_constructor(self, three):
        class Bad:
            def __init__(self):
                raise ValueError("no")

            def pid(self):
                pass

        bad = ray.remote(resources={"a": 1})(Bad).remote()
        with pytest.raises(ActorDiedError, match="no"):
            ray.get(bad.pid.remote(), timeout=30)

    def test_names_across_nodes(self, three):
        place = Place.options(name="there", resources={"b": 1}).remote(3)

        @ray.remote(resources={"a": 1})
        def find():
            return ray.get(ray.get_actor("there").get.remote())

        assert ray.get(find.remote()) == 3
        with pytest.raises(ValueError, match="already taken"):
            Place.options(name="there").remote()
        ray.kill(place)
        wait_until(lambda: "there" not in ray.util.list_named_actors())


class TestTwoPrograms:
    def test_detached_actors_and_namespaces(self, three, tmp_path):
        Place.options(name="stays", lifetime="detached").remote("ours")
        ray.get(ray.get_actor("stays").get.remote())
        program = tmp_path / "other.py"
        program.write_text(
            textwrap.dedent(
                f"""
                import oxiray as ray

                ray.init(address={three.address!r}, namespace="other", logging_level="error")

                @ray.remote
                class Place:
                    def get(self):
                        return "theirs"

                try:
                    ray.get_actor("stays")
                    raise SystemExit("namespaces are not apart")
                except ValueError:
                    pass
                print(ray.get(ray.get_actor("stays", namespace="tests").get.remote()))
                place = Place.options(name="stays", lifetime="detached").remote()
                print(ray.get(place.get.remote()))
                print(ray.get_runtime_context().get_job_id())
                """
            )
        )
        done = subprocess.run(
            [sys.executable, str(program)], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        ours, theirs, job = done.stdout.split()
        assert (ours, theirs) == ("ours", "theirs")
        assert job != ray.get_runtime_context().get_job_id()
        # It outlives the program that made it.
        found = ray.get_actor("stays", namespace="other")
        assert ray.get(found.get.remote()) == "theirs"
        names = ray.util.list_named_actors(all_namespaces=True)
        assert {"namespace": "other", "name": "stays"} in names
        for actor in (found, ray.get_actor("stays")):
            ray.kill(actor)

    def test_modules_beside_the_other_programs_script(self, three, tmp_path):
        (tmp_path / "beside.py").write_text("def double(x):\n    return 2 * x\n")
        (tmp_path / "main.py").write_text(
            textwrap.dedent(
                f"""
                import beside
                import oxiray as ray

                ray.init(address={three.address!r}, logging_level="error")
                double = ray.remote(beside.double)
                refs = [double.options(resources={{n: 1}}).remote(3) for n in "ab"]
                print(ray.get(refs, timeout=30))
                """
            )
        )
        done = subprocess.run(
            [sys.executable, str(tmp_path / "main.py")], capture_output=True, text=True, timeout=60
        )
        assert done.stdout == "[6, 6]\n", done.stderr


class TestObjects:
    def test_small_and_large_arguments_and_results(self, three):
        @ray.remote
        def double(x):
            return x * 2

        for name in "ab":
            remote = double.options(resources={name: 1})
            assert ray.get(remote.remote(21)) == 42
            array = np.arange(1_000_000)
            assert (ray.get(remote.remote(array)) == array * 2).all()

    def test_a_hundred_megabytes_each_way(self, three):
        array = np.arange(HUNDRED_MB // 8)
        ref = ray.put(array)
        total = ray.remote(lambda x: int(x.sum())).options(resources={"a": 1})
        assert ray.get(total.remote(ref), timeout=60) == int(array.sum())
        make = ray.remote(lambda: np.arange(HUNDRED_MB // 8)).options(resources={"b": 1})
        got = ray.get(make.remote(), timeout=60)
        assert (got == array).all()

    def test_from_one_other_node_to_another(self, three):
        make = ray.remote(lambda: np.ones(5_000_000)).options(resources={"a": 1})
        total = ray.remote(lambda x: float(x.sum())).options(resources={"b": 1})
        ref = make.remote()
        assert ray.get([total.remote(ref) for _ in range(5)], timeout=60) == [5e6] * 5

    def test_references_inside_values(self, three):
        @ray.remote
        def put():
            return [ray.put(np.full(1_000_000, 3))]

        @ray.remote
        def read(refs):
            return int(ray.get(refs[0])[0])

        refs = ray.get(put.options(resources={"a": 1}).remote())
        assert ray.get(read.options(resources={"b": 1}).remote(refs), timeout=30) == 3
        assert int(ray.get(refs[0], timeout=30)[0]) == 3

    def test_nested_tasks(self, three):
        @ray.remote(resources={"a": 0.5})
        def outer(n):
            return sum(ray.get([inner.remote(i) for i in range(n)]))

        @ray.remote(resources={"b": 0.5})
        def inner(i):
            return i

        assert ray.get(outer.remote(20), timeout=60) == 190

    def test_errors_arrive(self, three):
        @ray.remote
        def fail():
            raise KeyError("there")

        with pytest.raises(KeyError, match="there"):
            ray.get(fail.options(resources={"a": 1}).remote(), timeout=30)

    def test_what_workers_of_other_nodes_print_arrives(self, three, capfd):
        @ray.remote(resources={"b": 1})
        def say():
            print("hello from b")

        ray.get(say.remote())
        text = ""

        def heard():
            nonlocal text
            out, err = capfd.readouterr()
            text += out + err
            return "hello from b" in text

        wait_until(heard)


class TestNodesComeAndGo:
    def test_a_node_more_is_used(self, growing):
        ref = where.options(resources={"late": 1}).remote()
        ready, _ = ray.wait([ref], timeout=0.2)
        assert not ready
        node = growing.add_node(resources={"late": 1})
        assert ray.get(ref, timeout=30) == node.node_id

    def test_tasks_of_a_node_that_is_killed_are_retried(self, growing, gate, tmp_path):
        first = growing.add_node(resources={"x": 1})

        @ray.remote(resources={"x": 1}, max_retries=1)
        def run():
            (tmp_path / where_am_i()).touch()
            gate.wait()
            return where_am_i()

        ref = run.remote()
        wait_until(lambda: (tmp_path / first.node_id).exists())
        second = growing.add_node(resources={"x": 1})
        growing.remove_node(first, allow_graceful=False)
        gate.open()
        assert ray.get(ref, timeout=60) == second.node_id
        growing.wait_for_nodes()
        assert ray.cluster_resources()["CPU"] == 2

    @pytest.mark.parametrize("graceful", [True, False])
    def test_a_node_that_left_is_still_listed(self, growing, graceful):
        node = growing.add_node()
        growing.remove_node(node, allow_graceful=graceful)
        growing.wait_for_nodes()
        left = [one for one in ray.nodes() if not one["Alive"]]
        assert [one["NodeID"] for one in left] == [node.node_id]
        assert left[0]["DeathReasonMessage"] and not left[0]["Resources"]

    def test_tasks_that_may_not_be_retried_fail(self, growing, tmp_path):
        node = growing.add_node(resources={"x": 1})

        @ray.remote(resources={"x": 1}, max_retries=0)
        def hang():
            import time

            (tmp_path / "here").touch()
            time.sleep(1000)

        ref = hang.remote()
        wait_until((tmp_path / "here").exists)
        growing.remove_node(node, allow_graceful=False)
        with pytest.raises(RayError):
            ray.get(ref, timeout=60)

    @pytest.mark.parametrize("graceful", [True, False])
    def test_actors_of_a_node_that_goes(self, growing, graceful):
        node = growing.add_node(resources={"x": 2})
        mortal = Place.options(resources={"x": 1}).remote()
        moving = (
            Place.options(num_cpus=0, max_restarts=-1, max_task_retries=-1)
            .options(scheduling_strategy=at(node, soft=True))
            .remote()
        )
        assert ray.get([mortal.where.remote(), moving.where.remote()]) == [node.node_id] * 2
        growing.remove_node(node, allow_graceful=graceful)
        with pytest.raises(ActorDiedError):
            ray.get(mortal.where.remote(), timeout=60)
        assert ray.get(moving.where.remote(), timeout=60) == growing.head_node.node_id

    def test_objects_of_a_node_that_goes(self, growing):
        node = growing.add_node(num_cpus=1, resources={"x": 1})
        make = ray.remote(lambda: np.ones(1_000_000))
        again = make.options(scheduling_strategy=at(node, soft=True)).remote()
        lost = make.options(resources={"x": 1}, max_retries=0).remote()
        ray.wait([again, lost], num_returns=2, fetch_local=False, timeout=30)
        growing.remove_node(node, allow_graceful=False)
        with pytest.raises(RayError):
            ray.get(lost, timeout=60)
        # Made again, if the engine can; never a hang.
        try:
            assert ray.get(again, timeout=60).sum() == 1e6
        except RayError:
            pass

    def test_the_control_service_may_go_away_for_a_while(self, growing):
        node = growing.add_node(resources={"x": 1})
        place = Place.options(resources={"x": 1}, name="kept").remote(5)
        assert ray.get(place.get.remote()) == 5
        growing.head_node.kill_gcs_server()
        # What runs goes on.
        assert ray.get(place.get.remote(), timeout=30) == 5
        assert ray.get(where.remote(), timeout=30)
        growing.head_node.start_gcs_server()
        found = wait_until(lambda: ray.get_actor("kept"))
        assert ray.get(found.where.remote(), timeout=30) == node.node_id

    def test_the_driver_s_own_node_cannot_be_removed(self, growing):
        with pytest.raises(ValueError, match="will break the driver"):
            growing.remove_node(growing.head_node)


def test_nothing_is_left_when_the_program_is_killed(driver):
    process = driver.start(
        """
        import time
        from oxiray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True)
        cluster.add_node()
        print("ready", flush=True)
        time.sleep(1000)
        """
    )
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate()
    wait_until(lambda: not processes_under(driver.base), 20, "all services end")
    shutil.rmtree(driver.base)


def test_connecting_to_nothing():
    with pytest.raises(RuntimeError, match="uninitialized"):
        Cluster(connect=True)
