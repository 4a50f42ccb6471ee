"""Notebooks: ours run from top to bottom, and kernels may be interrupted and started anew.

The one that needs TensorFlow runs in `make test-tf`.
"""

from __future__ import annotations

import importlib.util
import os
import queue
from pathlib import Path

import pytest
from conftest import Driver, processes_under, wait_until

nbformat = pytest.importorskip("nbformat")
jupyter_client = pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"
NEEDS = {"11_neural_net_weights": "tensorflow"}
slow = pytest.mark.slow


@slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")))
def test_each_runs_from_top_to_bottom(name, tmp_path):
    needed = NEEDS.get(name, "numpy")
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"needs {needed}")
    from nbclient import NotebookClient

    driver = Driver(tmp_path)
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    client = NotebookClient(notebook, timeout=200, resources={"metadata": {"path": tmp_path}})
    client.execute(env={**os.environ, "OXIRAY_TMPDIR": driver.base})
    tables = [
        output["data"]["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    # Where `init` is the last thing in its cell, it shows what was started.
    assert "10" in name or any("Oxiray version" in table for table in tables)
    driver.clean()


def test_all_are_in_the_index_and_carry_no_outputs():
    index = (NOTEBOOKS / "README.md").read_text()
    paths = sorted(NOTEBOOKS.glob("*.ipynb"))
    assert len(paths) == 12
    for path in paths:
        assert f"({path.name})" in index
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        for cell in notebook.cells:
            assert not cell.get("outputs") and cell.get("execution_count") is None


class Kernel:
    """A kernel as a notebook has it, and what its cells say."""

    def __init__(self, directory):
        self.driver = Driver(directory)
        self.manager = jupyter_client.KernelManager(kernel_name="python3")
        self.manager.start_kernel(
            cwd=directory, env={**os.environ, "OXIRAY_TMPDIR": self.driver.base}
        )
        self._connect()

    def _connect(self):
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def restart(self, now):
        self.client.stop_channels()
        self.manager.restart_kernel(now=now)
        self._connect()

    def start(self, source):
        """Starts a cell."""
        return self.client.execute(source)

    def finish(self, cell, timeout=60):
        """The cell's reply, and what it showed: text of its streams, and results by type."""
        reply = self._reply(cell, timeout)
        streams, shown = "", []
        while True:
            message = self.client.get_iopub_msg(timeout=timeout)
            if message["parent_header"].get("msg_id") != cell:
                continue
            content = message["content"]
            if message["msg_type"] == "stream":
                streams += content["text"]
            elif "data" in content:
                shown.append(content["data"])
            elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                return reply["content"], streams, shown

    def _reply(self, cell, timeout):
        while True:
            reply = self.client.get_shell_msg(timeout=timeout)
            if reply["parent_header"].get("msg_id") == cell:
                return reply

    def run(self, source):
        reply, streams, shown = self.finish(self.start(source))
        assert reply["status"] == "ok", "\n".join(reply.get("traceback", []))
        return streams, shown

    def later_output(self, cell, text, timeout=20):
        """Waits until `text` has been printed under the cell, which may be done."""
        seen = ""
        while text not in seen:
            try:
                message = self.client.get_iopub_msg(timeout=timeout)
            except queue.Empty:
                pytest.fail(f"{text!r} was not shown; there was {seen!r}")
            if message["msg_type"] == "stream" and message["parent_header"]["msg_id"] == cell:
                seen += message["content"]["text"]
        return seen

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.driver.clean()

    def engine_processes(self):
        """Those of sessions: the kernel itself has the variable, too."""
        kernel = self.manager.provisioner.pid
        return {pid: c for pid, c in processes_under(self.driver.base).items() if pid != kernel}


@pytest.fixture
def kernel(tmp_path):
    kernel = Kernel(tmp_path)
    yield kernel
    kernel.end()


INIT = "import oxiray as ray\nray.init(num_cpus=2, ignore_reinit_error=True)"


def test_the_table_and_cells_that_are_run_again(kernel):
    for _ in range(2):
        _, [table] = kernel.run(INIT)
        for part in ("<b>Python version:</b>", "<b>Oxiray version:</b>", "<b>Dashboard:</b>"):
            assert part in table["text/html"]
        assert table["text/plain"].startswith("RayContext(")
    # Without the word that says it is meant, a second one is refused with what to do.
    reply, _, _ = kernel.finish(kernel.start("ray.init()"))
    assert reply["ename"] == "RuntimeError" and "ignore_reinit_error=True" in reply["evalue"]


def test_functions_and_classes_that_are_written_anew(kernel):
    kernel.run(INIT)
    for answer in (1, 2):
        # The class, the function, and what it calls.
        kernel.run(f"def helper():\n    return {answer}")
        kernel.run("@ray.remote\ndef f():\n    return helper()")
        kernel.run(f"@ray.remote\nclass A:\n    def m(self):\n        return {answer} * helper()")
        kernel.run(f"assert ray.get(f.remote()) == {answer}")
        kernel.run(f"assert ray.get(A.remote().m.remote()) == {answer * answer}")
    # Whoever was there before stays what it was.
    kernel.run("actor = A.remote()\nassert ray.get(actor.m.remote()) == 4")
    kernel.run("@ray.remote\nclass A:\n    def m(self):\n        return 'new'")
    kernel.run("assert ray.get(actor.m.remote()) == 4")
    kernel.run("assert ray.get(A.remote().m.remote()) == 'new'")


def test_output_of_workers_is_under_the_cell_that_runs(kernel):
    kernel.run(INIT)
    kernel.run("@ray.remote\ndef speak(text):\n    print(text)")
    for text in ("first", "second"):
        cell = kernel.start(f"ray.get(speak.remote({text!r}))")
        assert f") {text}\n" in kernel.later_output(cell, text)


def test_bars_of_workers_are_shown_and_updated(kernel):
    kernel.run(INIT)
    kernel.run(
        "from oxiray.experimental import tqdm_ray\n"
        "@ray.remote\n"
        "def work():\n"
        "    return sum(tqdm_ray.tqdm(range(10), desc='<b>', flush_interval_s=0))"
    )
    cell = kernel.start("ray.get(work.remote())")
    while True:
        message = kernel.client.get_iopub_msg(timeout=20)
        data = message["content"].get("data", {})
        if "10/10" in data.get("text/plain", ""):
            break
    assert message["msg_type"] in ("display_data", "update_display_data")
    assert "<b>" in data["text/plain"] and "&lt;b&gt;" in data["text/html"]
    assert message["parent_header"]["msg_id"] == cell


@pytest.mark.parametrize("where", ["get", "wait", "task_of_own"])
def test_a_cell_is_interrupted(kernel, where, tmp_path):
    kernel.run(INIT)
    mark = tmp_path / "runs"
    kernel.run(
        f"import pathlib, time\n"
        f"@ray.remote\n"
        f"def endless():\n"
        f"    pathlib.Path({str(mark)!r}).touch()\n"
        f"    while True:\n"
        f"        time.sleep(0.01)\n"
        f"@ray.remote\n"
        f"def waits():\n"
        f"    return ray.get(endless.remote())"
    )
    source = {
        "get": "ray.get(endless.remote())",
        "wait": "ray.wait([endless.remote()])",
        "task_of_own": "ray.get(waits.remote())",
    }[where]
    cell = kernel.start(source)
    wait_until(mark.exists)
    kernel.manager.interrupt_kernel()
    reply, _, _ = kernel.finish(cell)
    assert reply["status"] == "error" and reply["ename"] == "KeyboardInterrupt"
    # The session is whole: there is a second CPU.
    kernel.run("assert ray.get(ray.remote(lambda: 7).remote()) == 7")


@pytest.mark.parametrize("now", [True, False], ids=["killed", "asked"])
def test_a_restarted_kernel_leaves_nothing_of_the_old_one(kernel, now):
    kernel.run(INIT)
    kernel.run("ray.get([ray.remote(lambda: 1).remote() for _ in range(4)])")
    old = set(kernel.engine_processes())
    assert old
    kernel.restart(now)
    wait_until(lambda: not old & set(kernel.engine_processes()), 10, "the old session ends")
    kernel.run(INIT)
    kernel.run("assert ray.get(ray.remote(lambda: 7).remote()) == 7")
    kernel.run("ray.shutdown()")
    wait_until(lambda: not kernel.engine_processes(), 10, "the session ends")
