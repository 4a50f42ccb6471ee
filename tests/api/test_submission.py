"""Handing in jobs, without a cluster: which cluster an address means, and what is said of a job."""

from __future__ import annotations

import json
import sys
import types

import pytest
from oxiray.dashboard.modules.dashboard_sdk import (
    ClusterInfo,
    SubmissionClient,
    get_job_submission_client_cluster_info,
    parse_cluster_info,
    parse_runtime_env_args,
)
from oxiray.dashboard.modules.job import common, pydantic_models, sdk
from oxiray.job_submission import JobErrorType, JobInfo, JobStatus, JobSubmissionClient


def test_an_address_with_its_token():
    info = parse_cluster_info("http://127.0.0.1:9/?token=abc", cookies={"a": 1}, metadata={"b": 2})
    assert info == ClusterInfo(
        "http://127.0.0.1:9", {"a": 1}, {"b": 2}, {"Authorization": "Bearer abc"}
    )
    given = parse_cluster_info("https://h:9/?token=abc", headers={"Authorization": "Bearer mine"})
    assert given.address == "https://h:9"
    assert given.headers == {"Authorization": "Bearer mine"}


def test_an_address_that_a_module_knows(monkeypatch):
    asked = {}

    def knows(address, **options):
        asked.update(options, address=address)
        return ClusterInfo("http://127.0.0.1:1", {"c": "d"}, {"e": "f"}, {"G": "h"})

    module = types.ModuleType("my_clusters")
    module.get_job_submission_client_cluster_info = knows
    monkeypatch.setitem(sys.modules, "my_clusters", module)
    client = SubmissionClient("my_clusters://blue", region="north")
    assert client.get_address() == "http://127.0.0.1:1"
    assert asked["address"] == "blue"
    assert asked["region"] == "north"
    with pytest.raises(ConnectionError, match="Failed to connect"):
        JobSubmissionClient("my_clusters://green", region="south")
    assert asked["region"] == "south"


def test_an_address_that_no_module_knows():
    with pytest.raises(RuntimeError, match="Module: nowhere_at_all does not exist"):
        parse_cluster_info("nowhere_at_all://x")
    with pytest.raises(RuntimeError, match="json does not have `get_job_submission"):
        parse_cluster_info("json://x")
    with pytest.raises(ConnectionError, match="http://"):
        parse_cluster_info("ray://127.0.0.1:10001")


def test_the_function_that_others_have_too():
    info = get_job_submission_client_cluster_info("h:1", _use_tls=True, headers={"a": "b"})
    assert info == ClusterInfo("https://h:1", None, None, {"a": "b"})


def test_environment_of_a_command(tmp_path, capsys):
    assert parse_runtime_env_args() == {}
    assert parse_runtime_env_args(runtime_env_json='{"pip": ["a"]}') == {"pip": ["a"]}
    file = tmp_path / "env.json"
    file.write_text('{"working_dir": "x", "env_vars": {"A": "b"}}')
    whole = parse_runtime_env_args(str(file), working_dir="y")
    assert whole == {"working_dir": "y", "env_vars": {"A": "b"}}
    assert "--working-dir counts" in capsys.readouterr().err
    with pytest.raises(ValueError, match="Only one of"):
        parse_runtime_env_args(str(file), "{}")
    with pytest.raises(ValueError, match="must have the fields"):
        parse_runtime_env_args(runtime_env_json="[]")


def test_info_as_json_and_back():
    info = JobInfo(
        JobStatus.FAILED,
        "python x.py",
        error_type=JobErrorType.JOB_ENTRYPOINT_COMMAND_ERROR,
        runtime_env={"pip": ["a"]},
    )
    said = info.to_json()
    assert json.loads(json.dumps(said)) == said
    assert said["runtime_env_json"] == '{"pip": ["a"]}'
    assert "runtime_env" not in said
    assert JobInfo.from_json(said) == info
    plain = JobInfo(JobStatus.PENDING, "true")
    assert JobInfo.from_json(plain.to_json()) == plain


def test_the_places_where_ray_has_them():
    assert sdk.JobSubmissionClient is JobSubmissionClient
    assert issubclass(JobSubmissionClient, sdk.SubmissionClient)
    assert common.JobInfo is JobInfo
    assert pydantic_models.JobDetails is sdk.JobDetails
