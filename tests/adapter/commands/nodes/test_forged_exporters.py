"""The running program beside pods of tenants that export node_exporter's series for nodes that are not theirs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from tests.adapter.commands.nodes.harness import (
    FUTURE_SECONDS,
    PAST_SECONDS,
    STEP_SECONDS,
    NodesProcess,
    node,
    running_nodes,
)
from tests.support.harnesses import always, moments, prometheus_with, samples
from tests.support.serving import eventually, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.harnesses import Course

REAL = {"job": "node-exporter", "namespace": "monitoring"}
QUERY = 'tidewatch_node_utilization_ratio{resource="cpu",window="15m",stat="avg"}'
OBJECTS = listed(*(node(f"n{number}", f"10.0.0.{number}", "east") for number in (1, 2, 3)))


def exporter(busy: float, **labels: str) -> tuple[float, dict[str, str]]:
    return busy, labels


def exporters() -> Iterator[tuple[float, dict[str, str]]]:
    """Yield, for each exporter, how busy it says its node is, and its labels."""
    for number in (1, 2, 3):
        yield exporter(0.1, **REAL, instance=f"10.0.0.{number}:9100")
    for pod in range(9):
        yield exporter(1.0, job="evil/pods", namespace="evil", instance=f"10.244.0.{pod}:80", node="n1")
    # The same job, the same instance, all nodes and many more.
    yield exporter(1.0, job="node-exporter", namespace="evil", instance="10.244.1.1:80", node="n1")
    yield exporter(1.0, **REAL, instance="10.244.1.2:80", node="n1")
    yield exporter(1.0, job="evil/honest", namespace="evil", instance="10.0.0.1:9100")
    for name in ("n1", "n2", "n3", *(f"made-up-{number}" for number in range(20))):
        yield exporter(1.0, job="evil/all", namespace="evil", instance="10.244.1.3:80", node=name)


def counter(first: int, share: float) -> Course:
    """Return the course of a counter that grows by `share` in each second."""
    return lambda moment: round((moment - first) * share, 3)


def series_at(now: int) -> list[str]:
    lines: list[str] = []
    times = moments(now, STEP_SECONDS, PAST_SECONDS, FUTURE_SECONDS)
    first = times[0]
    for busy, labels in exporters():
        label_text = ",".join(f'{name}="{value}"' for name, value in labels.items())
        courses: dict[str, Course] = {}
        for mode, share in (("idle", 1 - busy), ("user", busy)):
            courses[f'node_cpu_seconds_total{{{label_text},cpu="0",mode="{mode}"}}'] = counter(first, share)
        courses[f"node_memory_MemTotal_bytes{{{label_text}}}"] = always(100)
        courses[f"node_memory_MemAvailable_bytes{{{label_text}}}"] = always(round(100 * (1 - busy)))
        lines += samples(courses, times)
    return lines


@pytest.fixture(name="nodes", scope="module")
def _nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodesProcess]:
    folder = tmp_path_factory.mktemp("exporters")
    with (
        prometheus_with(folder / "prometheus", series_at(int(time.time()))) as prometheus,
        running_nodes(folder, f"--prometheus-url={prometheus.url}", objects=OBJECTS) as running,
    ):
        running.watched()
        yield running


def test_all_endpoints_use_only_the_loads_of_the_real_exporters(nodes: NodesProcess) -> None:
    watched: dict[str, Any] = nodes.watched()
    assert sorted(watched) == ["n1", "n2", "n3"]
    for name in watched:
        assert nodes.values(name) == pytest.approx(
            {"CPU AVG": 10.0, "CPU STD": 0.0, "Memory AVG": 10.0, "Memory STD": 0.0}, abs=0.1
        )
    scores = nodes.ask("/scores?policy=target-load-packing&cpu=100m&memory=1Mi").document["scores"]
    assert len({one["score"] for one in scores}) == 1
    answer = nodes.ask(f"/api/v1/query?{urlencode({'query': QUERY})}").document
    assert [float(one["value"][1]) for one in answer["data"]["result"]] == pytest.approx([0.1] * 3, abs=0.001)
    assert "tidewatch_node_hot{" not in nodes.ask("/metrics").text


def test_refused_exporters_are_listed_and_logged(nodes: NodesProcess) -> None:
    document = nodes.ask("/nodes/unmapped").document
    assert document["jobs"] == [{"labels": REAL, "nodes": {"cpu": 3, "memory": 3}}]
    refused = {(one["labels"]["job"], one["labels"]["namespace"]) for one in document["items"] if one["refused"]}
    assert refused == {
        ("evil/pods", "evil"),
        ("node-exporter", "evil"),
        ("node-exporter", "monitoring"),
        ("evil/honest", "evil"),
        ("evil/all", "evil"),
    }
    assert all(
        "is measured by" in one["refused"] or "are measured by" in one["refused"]
        for one in document["items"]
        if one["refused"]
    )
    eventually(lambda: "the load of nodes is taken from these jobs" in nodes.log)
    eventually(lambda: "job evil/pods in evil" in nodes.log)


def test_paths_with_extra_slashes_are_redirected(nodes: NodesProcess) -> None:
    for path, location in (
        ("//watcher", "/watcher"),
        ("//watcher?host=n1", "/watcher?host=n1"),
        ("//watcher//n1", "/watcher/n1"),
    ):
        answer = nodes.ask(path)
        assert (answer.status, dict(answer.headers)["Location"]) == (307, location)
        assert nodes.ask(location).status == 200
    assert nodes.ask("//somewhere.example").status == 404
