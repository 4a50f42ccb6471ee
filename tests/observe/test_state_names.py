"""The names of `util.state.common`: columns of rows, summaries of rows, options, plain text."""

from __future__ import annotations

import oxiray as ray
import pytest
from oxiray.util import state
from oxiray.util.state import common


@ray.remote
def returns_one():
    return 1


@ray.remote
class Holder:
    def hold(self):
        return 1


@pytest.fixture(scope="module")
def busy(cluster):
    """A session in which there is something of each kind."""
    holder = Holder.remote()
    kept = [returns_one.remote() for _ in range(3)]
    ray.get([*kept, holder.hold.remote()])
    group = ray.util.placement_group([{"CPU": 1}])
    ray.get(group.ready())
    yield holder, kept, ray.put(b"x" * 1_000_000)
    ray.util.remove_placement_group(group)


LISTED = "tasks actors objects nodes workers jobs placement_groups".split()


@pytest.mark.parametrize("name", LISTED)
def test_rows_have_the_columns_that_their_class_says(busy, name):
    kind = common.resource_to_schema(common.StateResource(name))
    some = getattr(state, f"list_{name}")
    (row,) = some(limit=1)
    assert set(row) == kind.base_columns()
    (row,) = some(limit=1, detail=True)
    assert set(row) == kind.columns() == kind.detail_columns()
    assert kind.list_columns(detail=True) == sorted(row)
    assert isinstance(row, common.StateSchema)


@pytest.mark.parametrize("name", LISTED)
def test_filters_may_name_the_columns_of_every_row(busy, name):
    kind = common.resource_to_schema(common.StateResource(name))
    for column in kind.columns():
        said = ""
        try:
            getattr(state, f"list_{name}")(filters=[(column, "!=", "0")], limit=1)
        except ValueError as error:  # also of values that a column never has
            said = str(error)
        assert ("have no column" not in said) == (column in kind.filterable_columns()), said


def test_rows_for_people(busy):
    (node,) = state.list_nodes()
    shown = common.NodeState.humanify(node)
    assert shown["store_size"].endswith("GiB") or shown["store_size"].endswith("MiB")
    assert shown["start_time_ms"].startswith("20")
    assert shown["end_time_ms"] is None
    assert shown["node_id"] == node.node_id
    assert common.Humanify.memory(3 * 2**20) == "3.000 MiB"
    assert common.Humanify.memory(0) == "0.000 B"
    assert common.Humanify.duration(1500) == "0:00:01.500000"
    (task, *_) = state.list_tasks(detail=True)
    events = common.TaskState.humanify(task)["events"]
    assert all(isinstance(event["created_ms"], str) for event in events)


def test_summaries_of_rows_are_those_of_the_engine(busy):
    tasks = common.TaskSummaries.to_summary_by_func_name(tasks=state.list_tasks(limit=None))
    whole = state.summarize_tasks()["cluster"]
    assert tasks.total_tasks == whole["total_tasks"]
    counted = tasks.summary["returns_one"].state_counts
    assert counted == whole["summary"]["returns_one"]["state_counts"]
    actors = common.ActorSummaries.to_summary(actors=state.list_actors(limit=None))
    assert actors.summary["Holder"].state_counts["ALIVE"] >= 1
    assert actors.total_actors == state.summarize_actors()["cluster"]["total_actors"]
    objects = common.ObjectSummaries.to_summary(objects=state.list_objects(limit=None))
    assert objects.total_objects >= 4
    assert objects.total_size_mb >= 1


def test_a_client_counts_what_meets_its_filters(busy):
    client = state.StateApiClient()
    assert client.get_version().startswith("2.")
    assert client.get_address()
    assert state.StateApiClient("1.2.3.4:5").get_address() == "1.2.3.4:5"
    options = common.SummaryApiOptions(filters=[("name", "=", "returns_one")])
    found = client.summary(common.SummaryResource.TASKS, options=options)
    assert list(found["cluster"]["summary"]) == ["returns_one"]
    by_class = common.SummaryApiOptions(summary_by="class")
    assert "Holder" in client.summary("actors", options=by_class)["cluster"]["summary"]
    with pytest.raises(ValueError, match="by 'func_name' here"):
        client.summary("tasks", options=common.SummaryApiOptions(summary_by="lineage"))


def test_options_are_checked():
    options = common.ListApiOptions(filters=[("state", "=", "A"), ("state", "=", "B")])
    with pytest.warns(UserWarning, match="No row has"):
        assert options.has_conflicting_filters()
    assert not common.ListApiOptions(filters=[("state", "!=", "A")]).has_conflicting_filters()
    assert common.ListApiOptions(filters=None).filters == []
    with pytest.raises(ValueError, match="Unsupported filter predicate <"):
        common.ListApiOptions(filters=[("state", "<", "A")])
    with pytest.raises(ValueError, match="above 0"):
        common.GetApiOptions(timeout=0)


def test_dictionaries_as_rows():
    row = common.dict_to_state({"task_id": "a"}, common.StateResource.TASKS)
    assert isinstance(row, common.TaskState)
    assert row.task_id == "a"
    fields = common.filter_fields({"pid": 1, "other": 2}, common.WorkerState, detail=False)
    assert fields["pid"] == 1
    assert "other" not in fields
    with pytest.raises(ValueError, match="there are no rows here"):
        common.resource_to_schema(common.StateResource.CLUSTER_EVENTS)


def test_plain_text():
    assert common.remove_ansi_escape_codes("a\x1b[31mred\x1b[0m\x1b[2Kb") == "aredb"


@ray.remote
def says_in_colour():
    print("\x1b[32mgreen\x1b[0m leaves")
    return ray.get_runtime_context().get_task_id()


def test_a_log_without_colours(cluster):
    task = ray.get(says_in_colour.remote())
    assert "\x1b[32mgreen" in "".join(state.get_log(task_id=task))
    assert "".join(state.get_log(task_id=task, filter_ansi_code=True)) == "green leaves\n"


def test_a_code_in_two_pieces():
    from oxiray.util.state._plain import plain

    text = "a\x1b[31mred\x1b[0m and \x1b]0;title\x07 b \x1b[1;2"
    for size in range(1, len(text)):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert "".join(plain(pieces)) == "ared and  b \x1b[1;2"


def test_an_attempt_that_there_is_not(cluster):
    task = ray.get(says_in_colour.remote())
    with pytest.raises(ValueError, match=r"the last attempt of task .* is 0"):
        state.get_log(task_id=task, attempt_number=3)


def test_a_job_that_nobody_handed_in(cluster):
    with pytest.raises(ValueError, match="no job 'nobody'"):
        state.get_log(submission_id="nobody")
    with pytest.raises(ValueError, match="by one of"):
        state.get_log(submission_id="nobody", pid=1)
