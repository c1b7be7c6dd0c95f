from __future__ import annotations

import dataclasses
import gzip
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from adapter.foundation.web.http import Request
from adapter.nodes.extender.scores_page import scores_routes
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import GpuSettings, PolicyName, SchedulingSettings
from tests.adapter.nodes.extender.snapshots import NAN, load, nodes_snapshot

if TYPE_CHECKING:
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot

CPU = LoadResource.CPU


def scores_of(query: str, current: NodesSnapshot | None = None) -> tuple[int, Any]:
    """Return the status and the document."""
    (route,) = scores_routes(lambda: current or nodes_snapshot({"cpu": [0.45, 0.2, 0.8]}), SchedulingSettings())
    response = route.handle(Request("GET", "/scores", query=query))
    return response.status, json.loads(response.body)


def test_the_best_node_comes_first_with_its_reason() -> None:
    status, document = scores_of("policy=target-load-packing&cpu=400m&memory=1Gi&namespace=shop")
    assert status == 200
    assert (document["kind"], document["apiVersion"]) == ("NodeScores", "tidewatch.io/v1alpha1")
    assert list(document)[:2] == ["apiVersion", "kind"]
    assert document["window_end"] == "2023-11-14T22:28:20Z"
    assert (document["policy"], document["basis"]) == ("target-load-packing", "metrics")
    assert [(each["node"], each["score"]) for each in document["scores"]] == [
        ("node-2", 93),
        ("node-1", 27),
        ("node-3", 3),
    ]
    assert all(each["reason"] and each["known"] for each in document["scores"])
    assert document["scores"][0]["verdicts"] == {"cpu": "fresh"}


def test_an_unknown_node_comes_last_with_the_score_that_the_scheduler_gets() -> None:
    _, document = scores_of("policy=target-load-packing&cpu=400m", nodes_snapshot({"cpu": [NAN, 0.2, 0.8]}))
    assert [(each["node"], each["known"], each["score"]) for each in document["scores"]] == [
        ("node-2", True, 93),
        ("node-3", True, 3),
        ("node-1", False, 48),
    ]


def test_estimates_are_marked() -> None:
    current = nodes_snapshot({"cpu": [0.2, 0.5]}, load(CPU, [0.2, 0.5], estimated=[1]))
    _, document = scores_of("policy=target-load-packing", current)
    assert {each["node"]: each["estimated"] for each in document["scores"]} == {"node-1": [], "node-2": ["cpu"]}


def test_the_resolution_is_the_scrape_interval_where_it_is_known() -> None:
    known = load(CPU, [0.2, 0.5])
    current = nodes_snapshot({"cpu": [0.2, 0.5]}, dataclasses.replace(known, resolution_seconds=np.array([60.0, NAN])))
    _, document = scores_of("policy=target-load-packing", current)
    assert {each["node"]: each["resolution_seconds"] for each in document["scores"]} == {
        "node-1": {"cpu": 60.0},
        "node-2": {},
    }


def test_a_pod_without_requests_is_scored_by_the_defaults() -> None:
    """TargetLoadPacking's default is 1,000 milli: 20% and 25% together are 45%, which scores 37."""
    _, document = scores_of("policy=target-load-packing", nodes_snapshot({"cpu": [0.2]}))
    assert document["scores"][0]["score"] == 37


def test_large_answers_are_compressed_for_clients_that_accept_gzip() -> None:
    (route,) = scores_routes(lambda: nodes_snapshot({"cpu": [0.2] * 2000}), SchedulingSettings())
    request = Request("GET", "/scores", "policy=target-load-packing", (("Accept-Encoding", "gzip"),))
    response = route.handle(request)
    assert dict(response.headers)["Content-Encoding"] == "gzip"
    assert len(json.loads(gzip.decompress(response.body))["scores"]) == 2000


@pytest.mark.parametrize("policy", PolicyName)
def test_without_nodes_the_list_is_empty(policy: PolicyName) -> None:
    assert scores_of(f"policy={policy}&gpu=1", nodes_snapshot({"cpu": []}))[1]["scores"] == []


def test_a_gpu_parameter_is_refused_if_no_gpu_resource_is_configured() -> None:
    settings = SchedulingSettings(gpu=GpuSettings(resources=()))
    (route,) = scores_routes(lambda: nodes_snapshot({"cpu": [0.2]}), settings)
    assert route.handle(Request("GET", "/scores", query="policy=gpu-packing&gpu=1")).status == 400


def test_the_gpu_parameter_requests_gpus() -> None:
    status, document = scores_of("policy=gpu-packing&gpu=2", nodes_snapshot({"cpu": [0.2]}))
    assert (status, len(document["scores"])) == (200, 1)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("", "policy"),
        ("cpu=1", "policy"),
        ("policy=gpu-clustering", "gpu-clustering"),
        ("policy=peaks&cpu=lots", "cpu"),
        ("policy=peaks&cpu=-1", "cpu"),
        ("policy=peaks&cpu=", "cpu"),
        ("policy=peaks&cpu=1e400", "cpu is larger than any request"),
        ("policy=peaks&memory=1e30", "memory is larger than any request"),
        ("policy=peaks&memory=1GB", "memory"),
        ("policy=peaks&gpu=-1", "gpu"),
        ("policy=peaks&gpu=1.5", "gpu"),
        ("policy=peaks&gpu=99999", "gpu"),
        ("policy=peaks&namespace=A/B", "namespace"),
        ("policy=peaks&cpus=1", "cpus"),
        ("policy=peaks&policy=peaks", "policy"),
        ("policy=%ff", "query"),
        ("&".join(["cpu=1"] * 30), "query"),
    ],
)
def test_a_bad_parameter_is_named(query: str, named: str) -> None:
    status, document = scores_of(query)
    assert (status, document["kind"]) == (400, "Error")
    assert named in document["message"]
