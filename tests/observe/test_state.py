"""`oxiray.util.state`: what runs and what ran, on one node and on several."""

from __future__ import annotations

import codecs
import json
import os
import subprocess
import sys
import sysconfig

import oxiray as ray
import pytest
from conftest import wait_until
from oxiray.cluster_utils import Cluster
from oxiray.util import placement_group, remove_placement_group, state
from oxiray.util.state import RayStateApiException

NASTY = "<script>alert('1')</script>\"\n\x1b[31m"


@ray.remote
class Counter:
    def __init__(self, fails=False):
        if fails:
            raise RuntimeError("not today")

    def pid(self):
        return os.getpid()

    def say(self, *lines):
        for line in lines:
            print(line)
        print("to stderr", file=sys.stderr)
        return ray.get_runtime_context().get_node_id()


def actor_row(actor):
    return state.get_actor(actor._actor_id)


@pytest.fixture(scope="module")
def alone():
    ray.shutdown()
    ray.init(num_cpus=2, resources={"tool": 1}, namespace="tests", logging_level="error")
    yield
    ray.shutdown()


# One node.


def test_nodes_of_a_session(alone):
    (node,) = state.list_nodes()
    context = ray.get_runtime_context()
    assert node.node_id == node["node_id"] == context.get_node_id()
    assert (node.state, node.is_head_node, node.node_ip) == ("ALIVE", True, "127.0.0.1")
    assert node.resources_total["CPU"] == 2 and node.resources_total["tool"] == 1
    assert 0 < node.memory_used < node.memory_total
    assert node.start_time_ms > 1.7e12 and node.end_time_ms is None
    assert state.get_node(node.node_id[:12]).pid == node.pid
    json.dumps(node)


def test_the_job_of_a_session(alone):
    (job,) = state.list_jobs()
    assert job.job_id == ray.get_runtime_context().get_job_id()
    assert (job.status, job.driver_pid, job.namespace) == ("RUNNING", os.getpid(), "tests")
    assert "pytest" in job.entrypoint
    assert job.start_time_ms > 1.7e12 and job.end_time_ms is None


def test_workers_say_what_they_do(alone):
    actor = Counter.remote()
    pid = ray.get(actor.pid.remote())
    (worker,) = state.list_workers(filters=[("pid", "=", pid), ("is_alive", "=", True)])
    assert (worker.worker_type, worker.activity) == ("WORKER", "actor")
    assert worker.actor_id == actor._actor_id.hex()
    assert worker.rss > 1 << 20
    (driver,) = state.list_workers(filters=[("worker_type", "=", "driver")])
    assert driver.pid == os.getpid()
    assert driver.worker_id == ray.get_runtime_context().get_worker_id()
    ray.kill(actor)
    rows = lambda: state.list_workers(filters=[("pid", "=", pid), ("is_alive", "=", False)])  # noqa: E731
    (dead,) = wait_until(rows, message="the worker is among those that ended")
    assert "ray.kill" in dead.exit_detail and dead.end_time_ms >= dead.start_time_ms


def test_actors_alive_and_dead(alone):
    named = Counter.options(name=NASTY, num_cpus=1, resources={"tool": 0.5}).remote()
    pid = ray.get(named.pid.remote())
    row = actor_row(named)
    assert (row.state, row.class_name, row.pid) == ("ALIVE", "Counter", pid)
    assert (row.name, row.ray_namespace) == (NASTY, "tests")
    assert row.required_resources["tool"] == 0.5
    assert row.node_id == ray.get_runtime_context().get_node_id()
    assert row.death_cause is None and row.num_restarts == 0
    ray.kill(named)
    wait_until(lambda: actor_row(named).state == "DEAD", message="the actor is dead")
    row = actor_row(named)
    assert "ray.kill" in row.death_cause
    assert (row.name, row.pid) == (NASTY, pid), "what it was is remembered"
    failed = Counter.remote(fails=True)
    wait_until(lambda: actor_row(failed).state == "DEAD", message="its constructor fails")
    assert "constructor" in actor_row(failed).death_cause
    alive = {row.actor_id for row in state.list_actors(filters=[("state", "!=", "DEAD")])}
    assert not alive & {named._actor_id.hex(), failed._actor_id.hex()}


def test_actors_that_wait_say_why(alone):
    waiting = Counter.options(resources={"nowhere": 1}).remote()
    row = wait_until(lambda: actor_row(waiting), message="it is known")
    assert row.state == "PENDING_CREATION" and "nowhere" in row.why
    ray.kill(waiting)


def test_objects_and_who_holds_them(alone):
    ref = ray.put(b"x" * 300_000)
    (row,) = state.get_objects(ref)
    assert row.object_size > 300_000 and row.place == "memory"
    assert (row.reference_type, row.pid, row.type) == ("LOCAL_REFERENCE", os.getpid(), "DRIVER")
    summary = state.summarize_objects()["cluster"]
    assert summary["total_objects"] >= 1 and summary["total_size_mb"] > 0.3
    del ref


def test_wrong_questions_are_refused_with_the_answer(alone):
    with pytest.raises(ValueError, match=r"nmae.*class_name"):
        state.list_actors(filters=[("nmae", "=", "x")])
    with pytest.raises(ValueError, match="operator"):
        state.list_actors(filters=[("name", ">", "x")])
    with pytest.raises(ValueError, match="triple"):
        state.list_actors(filters=["name=x"])
    with pytest.raises(ValueError, match="limit"):
        state.list_nodes(limit=-1)
    assert state.get_actor("ff" * 16) is None
    with pytest.raises(AttributeError, match="detail=True"):
        _ = state.list_nodes()[0].colour


def test_summary_of_actors(alone):
    actors = [Counter.remote() for _ in range(2)]
    ray.get([actor.pid.remote() for actor in actors])
    summary = state.summarize_actors()["cluster"]
    assert summary["summary"]["Counter"]["state_counts"]["ALIVE"] >= 2
    assert summary["total_actors"] >= 2


def test_the_client_gives_what_the_functions_give(alone):
    from oxiray.util.state.common import ListApiOptions, StateResource, SummaryResource

    client = state.StateApiClient(address="auto")
    (node,) = client.list(StateResource.NODES)
    assert client.get(StateResource.NODES, node.node_id).node_id == node.node_id
    assert client.get(StateResource.NODES, "ff" * 28) is None
    ref = ray.put(b"x" * 300_000)
    assert client.get(StateResource.OBJECTS, ref.hex())[0].pid == os.getpid()
    driver = ListApiOptions(filters=[("worker_type", "=", "DRIVER")], detail=True)
    assert [row.pid for row in client.list(StateResource.WORKERS, options=driver)] == [os.getpid()]
    assert "cluster" in client.summary(SummaryResource.TASKS)
    with pytest.raises(ValueError, match="among actors"):
        client.get(StateResource.RUNTIME_ENVS, "x")


def test_what_is_not_there_is_listed_as_nothing(alone):
    for name in ("list_runtime_envs", "list_cluster_events"):
        assert getattr(state, name)(filters=[("state", "=", "CREATED")], limit=5) == []
    assert state.get_placement_group("ab" * 18) is None


def test_placement_groups(alone):
    made = placement_group([{"CPU": 0.5}, {"CPU": 0.5}], name="made")
    waits = placement_group([{"CPU": 1000}], strategy="STRICT_PACK", name="waits")
    assert made.wait(10)
    listed = {row.name: row for row in state.list_placement_groups(detail=True)}
    row = listed["made"]
    assert (row.state, row.strategy, row.bundle_count) == ("CREATED", "PACK", 2)
    assert row.placement_group_id == made.id.hex() and not row.is_detached and row.why is None
    own = ray.get_runtime_context().get_node_id()
    assert [(b["resources"], b["node_id"]) for b in row.bundles] == [({"CPU": 0.5}, own)] * 2
    assert listed["waits"].state == "PENDING" and "CPU: 1000" in listed["waits"].why
    assert state.get_placement_group(waits.id).name == "waits"
    pending = state.list_placement_groups(filters=[("state", "=", "PENDING")])
    assert [row.name for row in pending] == ["waits"]
    program = os.path.join(sysconfig.get_path("scripts"), "oxiray")
    for arguments in (["why", "waits"], ["status"], ["list", "placement-groups"]):
        said = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
        assert "waits" in said.stdout and "CPU: 1000" in said.stdout, (arguments, said.stdout)
    counted = subprocess.run(
        [program, "summary", "placement-groups"], capture_output=True, text=True, check=True
    )
    assert "STRICT_PACK" in counted.stdout
    remove_placement_group(made)
    remove_placement_group(waits)
    wait_until(lambda: state.get_placement_group(made.id).state == "REMOVED")
    assert "remove_placement_group" in state.get_placement_group(made.id).why


def test_two_sessions_can_be_asked_in_turn(alone):
    from oxiray import _native
    from oxiray.util.state import _observer

    directory = _native.context()["session_dir"]
    state.list_nodes()
    state.list_nodes(address=directory)
    kept = set(_observer._kept._used)
    assert len(kept) >= 2
    state.list_nodes()
    assert set(_observer._kept._used) == kept, "neither was connected anew"


def test_connections_are_forgotten_when_nobody_asks():
    from oxiray.util.state import _observer

    kept = _observer._Kept()
    for number in range(10):
        kept.put((1, None, str(number)), object())
    assert [key[2] for key in kept._used] == ["6", "7", "8", "9"]
    newest = kept._used[1, None, "9"][1]
    kept.forget_idle(newest + 1)
    assert len(kept._used) == 4 and kept._timer is not None
    kept._timer.cancel()
    kept.forget_idle(newest + _observer._KEPT_S)
    assert not kept._used and kept._timer is None


def test_a_log_that_was_too_fast_says_that_lines_are_missing(monkeypatch):
    from oxiray.util.state import _logs

    half_a_character = "ä".encode()[:1]
    chunks = [(half_a_character, False), (b"later", True), (b"", False)]
    answers = iter((data, (1, 1, 0), is_after_loss, False) for data, is_after_loss in chunks)
    monkeypatch.setattr(_logs, "ask", lambda address, question, timeout: next(answers))
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    pieces = _logs._Reader(None, 1, decoder, False, -1, 0.0).of_file("node", "file")
    with pytest.warns(UserWarning, match="Lines are missing"):
        assert list(pieces) == ["later"]


def test_threads_do_not_wait_for_one_another(alone):
    """Each has a connection of its own while it asks: another's may wait for a silent node."""
    import threading

    from oxiray.util.state import _observer

    inside, leave = threading.Event(), threading.Event()

    def question(observer):
        inside.set()
        assert leave.wait(60)
        return observer.gaps()

    slow = threading.Thread(target=_observer.ask, args=(None, question, 30))
    slow.start()
    try:
        assert inside.wait(60)
        assert len(state.list_nodes()) == 1
    finally:
        leave.set()
        slow.join()


def test_logs_of_a_worker(alone):
    actor = Counter.remote()
    ray.get(actor.say.remote("one", "zwei: ä", "three"))
    pid = ray.get(actor.pid.remote())
    text = lambda **which: "".join(state.get_log(**which))  # noqa: E731
    wait_until(lambda: f"worker-{pid}.out" in state.list_logs().get("worker_out", []))
    assert text(pid=pid) == "one\nzwei: ä\nthree\n"
    assert text(pid=pid, tail=2) == "zwei: ä\nthree\n"
    assert text(pid=pid, tail=0) == ""
    assert text(actor_id=actor._actor_id.hex(), suffix="err") == "to stderr\n"
    assert f"worker-{pid}.err" in state.list_logs(glob_filter=f"*{pid}*")["worker_err"]
    follow = state.get_log(pid=pid, follow=True, tail=1)
    assert next(follow) == "three\n"
    ray.get(actor.say.remote("later"))
    assert next(follow) == "later\n"


@pytest.mark.parametrize(
    "name", ["../node.sock", "..", "/etc/passwd", "../events", "none.log.1", "logs/x", "a\0b"]
)
def test_no_name_leads_out_of_the_logs(alone, name):
    from oxiray import _native

    node = ray.get_runtime_context().get_node_id()
    observer = _native.Observer(_native.context()["session_dir"])
    with pytest.raises(OSError, match=r"no file|cannot be read"):
        observer.read_log(node, name, (0, 0, 0))


def test_a_link_in_the_logs_is_not_followed(alone, tmp_path):
    from oxiray import _native

    (tmp_path / "secret").write_text("secret")
    directory = _native.context()["session_dir"]
    link = f"{directory}/logs/link.log"
    os.symlink(tmp_path / "secret", link)
    try:
        node = ray.get_runtime_context().get_node_id()
        with pytest.raises(OSError, match="link"):
            _native.Observer(directory).read_log(node, "link.log", (0, 0, 0))
        assert "link.log" not in str(state.list_logs())
    finally:
        os.remove(link)


def test_workers_may_look_too(alone):
    @ray.remote
    def look():
        return [job.job_id for job in state.list_jobs()]

    assert ray.get(look.remote()) == [ray.get_runtime_context().get_job_id()]


def test_nothing_runs(driver):
    done = driver(
        """
        from oxiray.util import state
        try:
            state.list_nodes()
        except ConnectionError as error:
            print(error)
        """
    )
    assert "no Oxiray session of yours is running" in done.stdout


# Several nodes.


@pytest.fixture(scope="module")
def two():
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    cluster.other = cluster.add_node(num_cpus=2, resources={"there": 2}, labels={"disk": "fast"})
    cluster.connect(namespace="tests")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def there(remote, **options):
    return remote.options(resources={"there": 0.1}, **options)


def test_all_nodes_are_listed_by_any(two):
    nodes = state.list_nodes()
    assert {node.state for node in nodes} == {"ALIVE"} and len(nodes) == 2
    assert [node.is_head_node for node in nodes].count(True) == 1
    (other,) = [node for node in nodes if node.node_id == two.other.node_id]
    assert other.labels["disk"] == "fast" and other.resources_total["there"] == 2
    assert other.pid == two.other.pid and other.memory_total > 0
    by_other = state.list_nodes(address=two.other.session_dir)
    assert {node.node_id for node in by_other} == {node.node_id for node in nodes}


def test_what_is_at_another_node(two):
    actor = there(Counter).remote()
    lines = [f"line {i}" for i in range(20_000)]
    assert ray.get(actor.say.remote(*lines)) == two.other.node_id
    pid = ray.get(actor.pid.remote())
    row = actor_row(actor)
    assert (row.state, row.node_id, row.pid) == ("ALIVE", two.other.node_id, pid)
    (worker,) = state.list_workers(filters=[("pid", "=", pid)])
    assert (worker.node_id, worker.activity) == (two.other.node_id, "actor")
    assert worker.rss > 1 << 20
    wanted = "".join(f"{line}\n" for line in lines)
    assert len(wanted) > 3 * 64 * 1024, "it takes several parts"
    wait_until(lambda: "".join(state.get_log(pid=pid)) == wanted, message="all lines are there")
    assert "".join(state.get_log(actor_id=actor._actor_id.hex(), tail=2)) == wanted[-22:]
    assert f"worker-{pid}.out" in state.list_logs(node_id=two.other.node_id)["worker_out"]
    head = next(node.node_id for node in state.list_nodes() if node.is_head_node)
    assert f"worker-{pid}.out" not in str(state.list_logs(node_id=head))
    ray.kill(actor)
    wait_until(lambda: actor_row(actor).state == "DEAD", message="the actor is dead")
    assert actor_row(actor).node_id == two.other.node_id


def test_objects_of_another_node(two):
    @ray.remote
    def make():
        return ray.put(b"y" * 200_000)

    inner = ray.get(there(make).remote())
    owner = state.get_objects(inner)[0]
    assert (owner.node_id, owner.place) == (two.other.node_id, "memory")


def test_what_a_node_does_not_tell_is_said(two):
    @ray.remote
    def here():
        return 1

    ref = here.remote()
    assert ray.get(ref) == 1
    events = f"{two.other.session_dir}/events"
    os.rename(events, f"{events}.away")
    open(events, "w").close()  # nothing that could be listed
    try:
        with pytest.raises(RayStateApiException, match="events of node"):
            state.summarize_tasks()
        with pytest.warns(UserWarning, match="events of node"):
            state.summarize_tasks(raise_on_missing_output=False)
        with pytest.warns(UserWarning, match="events of node"):
            state.get_task(ref)
        tool = os.path.join(os.path.dirname(sys.executable), "oxiray")
        done = subprocess.run(
            [tool, "summary", "tasks"], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0 and "events of node" in done.stderr
    finally:
        os.remove(events)
        os.rename(f"{events}.away", events)


def test_no_name_leads_out_of_another_nodes_logs(two):
    from oxiray import _native

    observer = _native.Observer(_native.context()["session_dir"])
    for name in ("../node.sock", "..", "../../../../../../etc/passwd"):
        with pytest.raises(OSError, match="cannot be read"):
            observer.read_log(two.other.node_id, name, (0, 0, 0))


def test_jobs_of_a_cluster(two, driver):
    program = """
        import oxiray as ray, os, sys
        ray.init(address="auto", logging_level="error")
        print(ray.get_runtime_context().get_job_id())
        exec(os.environ["END"])
    """
    base = os.environ["OXIRAY_TMPDIR"]
    ends = {
        "": ("SUCCEEDED", None),
        "raise ValueError('not today')": ("FAILED", "ValueError: not today"),
        "raise ValueError('bad\\udcff')": ("FAILED", "ValueError: bad?"),
        "try: 1 / 0\nexcept ZeroDivisionError: pass": ("SUCCEEDED", None),
        "os.kill(os.getpid(), 9)": ("FAILED", "it closed its connection"),
    }
    for end, (status, message) in ends.items():
        process = driver.start(program, env={"OXIRAY_TMPDIR": base, "END": end})
        out, err = process.communicate(timeout=60)
        assert out, err
        job_id = out.strip()
        wait_until(lambda job_id=job_id: state.get_job(job_id).status != "RUNNING")
        job = state.get_job(job_id)
        assert (job.status, job.driver_pid) == (status, process.pid)
        assert job.message == message
        assert job.end_time_ms >= job.start_time_ms > 1.7e12
        assert "program.py" in job.entrypoint
    driver.clean()


def test_a_node_that_left_is_listed_and_its_logs_are_gone():
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    other = cluster.add_node(num_cpus=1)
    cluster.connect()
    try:
        cluster.remove_node(other)
        row = wait_until(
            lambda: (row := state.get_node(other.node_id)).state == "DEAD" and row,
            message="the node is gone",
        )
        assert row.state_message and row.end_time_ms >= row.start_time_ms
        with pytest.raises(RayStateApiException, match="is gone"):
            state.list_logs(node_id=other.node_id)
        assert len(state.list_nodes(filters=[("state", "=", "ALIVE")])) == 1
        assert state.list_workers(), "what is left answers"
    finally:
        ray.shutdown()
        cluster.shutdown()
