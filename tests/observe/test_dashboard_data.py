"""What the dashboard's server says of a session, and what it does with what is hard to show."""

from __future__ import annotations

import os
import select
import shutil
import socket
import sys
import time

import oxiray as ray
import pytest
from conftest import is_alive, wait_until
from dashboard_client import Dashboard, servers
from oxiray._version import __version__, ray_version
from rendezvous import Meeting

MB = 2**20
HOSTILE = "<script>alert('\"&')</script>"


@pytest.fixture(scope="module")
def dashboard():
    ray.shutdown()
    context = ray.init(num_cpus=2, logging_level="error", log_to_driver=False, dashboard_port=0)
    yield Dashboard(context.dashboard_url)
    ray.shutdown()


@ray.remote
def square(x):
    return x * x


def called(name):
    """A remote function of that name: summaries group by it."""

    def function(x):
        return x * x

    function.__name__ = name
    return ray.remote(function)


def test_the_cluster(dashboard):
    ray.get([square.remote(i) for i in range(10)])
    seen = dashboard.json("/api/cluster")
    assert seen["ray_version"] == ray_version and seen["oxiray_version"] == __version__
    assert seen["python_version"] == sys.version.split()[0]
    assert seen["address"] == "local" and seen["session"].startswith("session_")
    assert seen["resources_total"]["CPU"] == 2
    assert seen["tasks"]["FINISHED"] >= 10
    assert seen["store_size"] > 0 and seen["started_ms"] < time.time() * 1000
    (node,) = seen["nodes"]
    assert node["state"] == "ALIVE" and node["is_head_node"]


def test_lists_are_filtered_sorted_and_cut(dashboard):
    ray.get([called(f"listed{i % 2}").remote(i) for i in range(20)])
    first = dashboard.json("/api/tasks?filter=name=listed1&limit=3&sort=start_time_ms")
    assert first["filtered"] == 10 and first["total"] >= 20 and len(first["rows"]) == 3
    rest = dashboard.json("/api/tasks?filter=name=listed1&offset=3&sort=start_time_ms")["rows"]
    times = [row["start_time_ms"] for row in first["rows"] + rest]
    assert len(times) == 10 and times == sorted(times)
    assert dashboard.json("/api/tasks?q=LISTED0&filter=state!=FAILED")["filtered"] == 10
    row = first["rows"][0]
    one = dashboard.json(f"/api/tasks/{row['task_id']}")
    assert one["name"] == "listed1" and one["state"] == "FINISHED" and one["events"]
    groups = dashboard.json("/api/summary/tasks")["rows"]
    (group,) = (group for group in groups if group["name"] == "listed1")
    assert group["states"] == {"FINISHED": 10}


def test_a_failed_task_says_why(dashboard):
    @ray.remote(max_retries=0)
    def stumble():
        raise ValueError("over a stone")

    with pytest.raises(ValueError):
        ray.get(stumble.remote())
    (row,) = dashboard.json("/api/tasks?filter=name=stumble&filter=state=FAILED")["rows"]
    one = dashboard.json(f"/api/tasks/{row['task_id']}")
    assert "in stumble" in one["error_message"] and "over a stone" in one["error_message"]


def test_a_task_that_waits_says_why(dashboard):
    waits = ray.remote(resources={"unicorn": 1})(lambda: 1).options(name="waits").remote()
    (row,) = wait_until(
        lambda: dashboard.json("/api/tasks?filter=name=waits")["rows"], 20, "it is listed"
    )
    why = dashboard.json(f"/api/tasks/{row['task_id']}/why")["text"]
    assert "unicorn" in why
    waiting = dashboard.json("/api/cluster")["waiting"]
    assert any("unicorn" in sentence for sentence in waiting)
    del waits


def test_the_other_lists(dashboard):
    @ray.remote
    class Keeper:
        def keep(self):
            return os.getpid()

    keeper = Keeper.options(name="keeper").remote()
    pid = ray.get(keeper.keep.remote())
    ref = ray.put(bytes(MB))
    (actor,) = dashboard.json("/api/actors?filter=name=keeper")["rows"]
    assert (actor["state"], actor["pid"]) == ("ALIVE", pid)
    assert dashboard.json(f"/api/actors/{actor['actor_id']}")["class_name"] == "Keeper"
    rows = dashboard.json(f"/api/objects?filter=object_id={ref.hex()}")["rows"]
    assert rows and rows[0]["object_size"] >= MB
    workers = dashboard.json("/api/workers?limit=1000")["rows"]
    assert pid in [worker["pid"] for worker in workers]
    assert dashboard.json("/api/jobs")["rows"][0]["status"] == "RUNNING"
    assert dashboard.json("/api/summary/actors")["rows"]
    assert dashboard.json("/api/summary/objects")["rows"]


def test_the_timeline(dashboard):
    ray.get([square.options(name="drawn").remote(i) for i in range(200)])
    drawn = dashboard.json("/api/timeline?q=drawn&width=500")
    spans = [span for row in drawn["rows"] for span in row["spans"]]
    assert sum(count for _, _, _, count, _, _ in spans) == 200
    assert {drawn["names"][name] for _, _, name, *_ in spans} == {"drawn"}
    assert all(drawn["from"] <= start <= drawn["to"] for start, *_ in spans)
    trace = dashboard.json("/api/timeline.json")
    assert sum(event["name"] == "drawn" and event["ph"] == "X" for event in trace) == 200


def test_changes_arrive(dashboard):
    events = dashboard.stream("/api/stream")
    seen = {}
    name = "arrives"
    ray.get(called(name).remote(1))
    for event, data in events:
        seen[event] = data
        if event == "tasks" and name in [row["name"] for row in data["rows"]]:
            break
    assert seen["cluster"]["nodes"]
    events.close()


def test_a_thousand_open_pages(dashboard):
    """All are told of a change, and the server is still small."""
    head = f"Host: {dashboard.address}\r\nAuthorization: Bearer {dashboard.token}\r\n\r\n"
    pages = []
    for _ in range(1000):
        page = socket.create_connection((dashboard.host, dashboard.port))
        page.sendall(f"GET /api/stream HTTP/1.1\r\n{head}".encode())
        pages.append(page)
    try:
        ray.get(called("for_all").remote(1))
        said = dict.fromkeys(pages, b"")
        poll = select.epoll()
        by_number = {page.fileno(): page for page in pages}
        for number in by_number:
            poll.register(number, select.EPOLLIN)

        def all_were_told():
            for number, _ in poll.poll(0.1):
                page = by_number[number]
                piece = page.recv(65536)
                assert piece, "a page was cut"
                # Only the end counts; what may be cut in two is kept.
                said[page] = said[page][-100:] + piece
                if b"for_all" in said[page]:
                    poll.unregister(number)
                    del by_number[number]
            return not by_number

        wait_until(all_were_told, 60, "every page hears of it")
        (pid,) = servers()
        assert memory_of(pid) < 100 * MB
        assert ray.get(square.remote(3), timeout=30) == 9
    finally:
        for page in pages:
            page.close()


def memory_of(pid):
    with open(f"/proc/{pid}/status") as file:
        (line,) = (line for line in file if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def log_of(dashboard, pid, stream="out"):
    files = dashboard.json("/api/logs")["files"]
    (found,) = (f for f in files if f["pid"] == pid and f["file"].endswith(f".{stream}"))
    return f"/api/logs/{found['node_id']}/{found['file']}", found["size"]


@ray.remote
def print_bytes(junk):
    os.write(1, junk)
    return os.getpid()


def test_a_log_as_it_grows(dashboard):
    @ray.remote
    class Printer:
        def say(self, text):
            print(text, flush=True)
            return os.getpid()

    printer = Printer.remote()
    pid = ray.get(printer.say.remote("first line"))
    path, _ = wait_until(lambda: log_of(dashboard, pid), 20, "there is a log")
    wait_until(lambda: "first line" in dashboard.json(path)["text"], 20, "it is written")
    events = dashboard.stream(f"{path}/stream")
    event, data = next(events)
    assert event == "text" and "first line" in data["text"]
    ray.get(printer.say.remote("second line"))
    event, more = next(event for event in events if event[0] == "text" and event[1]["text"])
    assert "second line" in more["text"] and more["offset"] == data["next"]
    events.close()
    end = dashboard.json(f"{path}?offset=-8&most=4")
    assert end["text"] == "nd l" and end["next"] == end["offset"] + 4


def test_junk_in_logs(dashboard):
    junk = b"\x1b[31mred\x1b[0m \xff\xfe\x00\x01 " + HOSTILE.encode() + "é€😀".encode() + b"\r\n"
    pid = ray.get(print_bytes.remote(junk))
    path, _ = log_of(dashboard, pid)
    wait_until(lambda: HOSTILE in dashboard.json(path + "?offset=-4096")["text"], 20, "it is there")
    reply = dashboard.get(path + "?offset=-4096")
    assert reply.headers["Content-Type"] == "application/json"
    assert "\x1b[31mred" in reply.json()["text"] and "é€😀" in reply.json()["text"]
    # Whatever the piece, characters are whole.
    offset, text = 0, ""
    while True:
        piece = dashboard.json(f"{path}?offset={offset}&most=7")
        if piece["next"] == offset:
            break
        offset, text = piece["next"], text + piece["text"]
    assert "é€😀" in text


def test_a_line_of_a_hundred_megabytes(dashboard):
    pid = ray.get(print_bytes.remote(b"x" * 100 * MB), timeout=100)
    path, _ = log_of(dashboard, pid)
    wait_until(lambda: log_of(dashboard, pid)[1] > MB, 60, "the log grows")
    piece = dashboard.json(path)
    assert 0 < len(piece["text"]) <= MB
    (server,) = servers()
    assert memory_of(server) < 200 * MB
    assert ray.get(square.remote(5), timeout=30) == 25


def test_names_with_anything_in_them(dashboard):
    ray.get(called(HOSTILE).remote(1))
    ray.get(square.options(name="line\nbreak\x00\x1b[31m").remote(1))
    rows = dashboard.json("/api/tasks?limit=10000")["rows"]
    assert HOSTILE in [row["name"] for row in rows]
    reply = dashboard.get("/api/tasks?limit=10000")
    assert reply.headers["Content-Type"] == "application/json"
    assert HOSTILE in [row["name"] for row in dashboard.json("/api/summary/tasks")["rows"]]
    assert dashboard.get("/metrics").status == 200
    dashboard.json("/api/timeline.json")


def test_no_path_leads_out_of_the_logs(dashboard):
    (node,) = dashboard.json("/api/nodes")["rows"]
    for name in ("..%2Fdashboard.token", "%2Fetc%2Fpasswd", "..", "logs%2F..%2F..", "%00", "."):
        for tail in ("", "/stream"):
            reply = dashboard.get(f"/api/logs/{node['node_id']}/{name}{tail}")
            assert reply.status in (400, 404), (name, reply.status, reply.text)
            assert dashboard.token not in reply.text and "root:" not in reply.text


@pytest.mark.skipif(
    not (shutil.which("py-spy", path=os.path.dirname(sys.executable)) or os.environ.get("CI")),
    reason="py-spy is not installed; `make test` installs it",
)
def test_a_stack_and_a_flame_graph(dashboard, gate):
    @ray.remote
    def work_until_the_gate_opens():
        # A flame graph is of what uses a processor.
        while not os.path.exists(gate.path):
            sum(range(1000))

    works = work_until_the_gate_opens.remote()
    workers = lambda: dashboard.json("/api/workers?filter=activity=task")["rows"]  # noqa: E731
    (worker,) = wait_until(workers, 20, "it runs")
    path = f"/api/workers/{worker['worker_id']}"

    def shows_it():
        reply = dashboard.post(f"{path}/stack")
        assert reply.status == 200, reply.text
        return "work_until_the_gate_opens" in reply.json()["text"]

    wait_until(shows_it, 20, "it runs: a worker that is leased may not have begun")
    reply = dashboard.post(f"{path}/profile?seconds=1")
    assert reply.status == 200, reply.text
    assert "<svg" in reply.json()["svg"]
    gate.open()
    ray.get(works)
    assert dashboard.post("/api/workers/00ff/stack").status == 404
    assert dashboard.post(f"{path}/profile?seconds=0").status == 400


def test_a_task_is_cancelled_and_an_actor_ended(dashboard, tmp_path):
    @ray.remote
    def child(path):
        open(path, "w").close()
        time.sleep(600)

    @ray.remote
    def parent(path):
        return ray.get(child.remote(path))

    @ray.remote(max_restarts=-1)
    class Stubborn:
        def pid(self):
            return os.getpid()

    begun = str(tmp_path / "begun")
    ref = parent.remote(begun)
    wait_until(lambda: os.path.exists(begun))
    path = f"/api/tasks/{ref.task_id().hex()}"
    reply = dashboard.post(f"{path}/cancel")
    assert (reply.status, reply.json()["text"]) == (200, "It was asked to end.")
    with pytest.raises(ray.exceptions.TaskCancelledError):
        ray.get(ref, timeout=30)
    wait_until(lambda: dashboard.json(path)["state"] == "CANCELLED")
    rows = wait_until(lambda: dashboard.json("/api/tasks?filter=name=child&filter=state=CANCELLED"))
    assert len(rows["rows"]) == 1, "what it had submitted"
    assert dashboard.post(f"{path}/cancel").json()["text"] == "It had ended before."

    stubborn = Stubborn.remote()
    pid = ray.get(stubborn.pid.remote())
    path = f"/api/actors/{stubborn._actor_id.hex()}"
    assert dashboard.post(f"{path}/kill").status == 200
    wait_until(lambda: dashboard.json(path)["state"] == "DEAD")
    wait_until(lambda: not is_alive(pid))
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(stubborn.pid.remote(), timeout=30)
    assert dashboard.post(f"{path}/kill").json()["text"] == "It had ended before."
    for unknown in ("/api/tasks/00ff/cancel", "/api/actors/00ff/kill"):
        assert dashboard.post(unknown).status == 404
    assert dashboard.get("/api/tasks/00ff/cancel").status == 405
    assert dashboard.post("/api/tasks/00ff/cancel?force=perhaps").status == 400


def test_a_stubborn_task_is_ended_by_force(dashboard, tmp_path):
    @ray.remote(max_retries=3)
    def stubborn(path):
        open(path, "w").close()
        while True:
            try:
                time.sleep(600)
            except KeyboardInterrupt:
                continue

    begun = str(tmp_path / "begun")
    ref = stubborn.remote(begun)
    wait_until(lambda: os.path.exists(begun))
    assert dashboard.post(f"/api/tasks/{ref.task_id().hex()}/cancel?force=true").status == 200
    with pytest.raises(ray.exceptions.TaskCancelledError):
        ray.get(ref, timeout=30)


def test_calls_at_once_have_rows_of_their_own(dashboard, tmp_path):
    @ray.remote(max_concurrency=3)
    class Several:
        def meet(self, meeting, name):
            return meeting.attend(name)

    several = Several.remote()
    meeting = Meeting(str(tmp_path), 3)
    assert all(ray.get([several.meet.remote(meeting, name) for name in range(3)]))

    def lanes():
        rows = dashboard.json("/api/timeline?q=Several.meet")["rows"]
        return sorted(row["lane"] for row in rows if row["spans"]) == [0, 1, 2]

    wait_until(lanes)
