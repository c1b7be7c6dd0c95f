"""The doctor looks at `tidewatch-adapter nodes`, and at what Trimaran and kube-scheduler make of its answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from adapter.commands.doctor.nodes import judge_extender, judge_unmapped, judge_verdicts, judge_watcher
from adapter.foundation.reports.lines import CheckStatus
from tests.adapter.commands.nodes.harness import running_nodes

if TYPE_CHECKING:
    from tests.adapter.commands.doctor.installation import Installation

NOW = 1000.0


def document(*names: str, end: float = NOW, key: str = "NodeMetricsMap") -> bytes:
    nodes: dict[str, object] = {name: {} for name in names}
    return json.dumps({"window": {"end": end}, "data": {key: nodes}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "names", "expected", "message"),
    [
        (200, document("a", "b"), ["a", "b"], CheckStatus.OK, "nodes served: 2, not served: 0; the windows ended 0 s"),
        (200, document("a"), None, CheckStatus.OK, "nodes served: 1, not served: 0"),
        (200, document("a"), ["a", "b"], CheckStatus.WARNING, "nodes served: 1, not served: 1"),
        (200, document("a", end=NOW - 200), ["a"], CheckStatus.WARNING, "the windows ended 200 s ago"),
        (200, document("a", end=NOW - 901), ["a"], CheckStatus.ERROR, "the windows ended 901 s ago"),
        (200, document("10.0.0.1"), ["a"], CheckStatus.ERROR, "Trimaran would score every node 0"),
        (200, document("a", key="nodeMetricsMap"), ["a"], CheckStatus.ERROR, "and score every node 0"),
        (200, b"<html>", ["a"], CheckStatus.ERROR, "and score every node 0"),
        (503, b'{"message":"no data yet"}', ["a"], CheckStatus.ERROR, "/watcher answers 503: no data yet"),
        (401, b"", ["a"], CheckStatus.UNKNOWN, "requires a token"),
    ],
)
def test_the_document_is_read_as_trimaran_reads_it(
    status: int, body: bytes, names: list[str] | None, expected: CheckStatus, message: str
) -> None:
    line = judge_watcher(status, body, names, NOW)
    assert line.status is expected
    assert message in line.message


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"fresh": 3, "stale": 0}, CheckStatus.OK),
        ({"fresh": 2, "stale": 1}, CheckStatus.WARNING),
        ({"missing": 3}, CheckStatus.ERROR),
    ],
)
def test_the_status_of_a_resource_follows_the_verdicts_of_its_nodes(
    counts: dict[str, int], expected: CheckStatus
) -> None:
    lines = "".join(
        f'tidewatch_node_verdicts{{resource="cpu",verdict="{verdict}"}} {number}\n'
        for verdict, number in counts.items()
    )
    (line,) = judge_verdicts(lines)
    assert (line.name, line.status) == ("nodes/cpu", expected)


def test_series_without_a_node_are_a_warning_with_the_repair() -> None:
    body = json.dumps({"items": [{"instance": "10.0.0.9:9100", "fix": "Relabel."}]}).encode()
    (line,) = judge_unmapped(200, body)
    assert (line.status, line.fix) == (CheckStatus.WARNING, "Relabel.")
    for status, document, expected in (
        (200, b'{"items":[]}', CheckStatus.OK),
        (503, b"", CheckStatus.UNKNOWN),
        (200, b"[]", CheckStatus.UNKNOWN),
    ):
        assert [line.status for line in judge_unmapped(status, document)] == [expected]


@pytest.mark.parametrize(
    ("refused", "status", "named"),
    [
        ([], CheckStatus.OK, ""),
        (
            [{"instance": "10.9.9.9:80", "refused": "Node n1 is measured.", "fix": "Stop."}],
            CheckStatus.WARNING,
            "refused, such as '10.9.9.9:80': Node n1 is measured.",
        ),
        (
            [{"instance": "", "refused": "job pods exports too many.", "fix": "Stop."}],
            CheckStatus.WARNING,
            "refused: job pods exports too many.",
        ),
    ],
)
def test_jobs_that_measure_nodes_and_refused_ones_are_named(
    refused: list[dict[str, str]], status: CheckStatus, named: str
) -> None:
    jobs = [{"labels": {"job": "node-exporter", "namespace": "monitoring"}, "nodes": {"cpu": 3, "memory": 2}}]
    unmapped, found = judge_unmapped(200, json.dumps({"jobs": jobs, "items": refused}).encode())
    assert unmapped.status is CheckStatus.OK
    assert found.status is status
    assert "job node-exporter in monitoring for 3 nodes" in found.message
    assert found.message.endswith(named)
    assert not refused or found.fix == "Stop."


@pytest.mark.parametrize(
    ("status", "expected"), [(200, CheckStatus.OK), (401, CheckStatus.OK), (500, CheckStatus.ERROR)]
)
def test_an_extender_that_answers_is_ok_and_one_that_fails_is_an_error(status: int, expected: CheckStatus) -> None:
    assert judge_extender(status).status is expected


def test_a_running_server_is_checked(installation: Installation) -> None:
    with running_nodes(installation.folder / "nodes", "--prometheus-url=http://127.0.0.1:9") as nodes:
        lines = installation.lines(f"--nodes-url=http://127.0.0.1:{nodes.port}")
    assert lines["nodes/extender"].status is CheckStatus.OK
    assert lines["nodes/watcher"].status is CheckStatus.ERROR


def test_an_unreachable_server_is_an_error(installation: Installation) -> None:
    line = installation.lines("--nodes-url=http://127.0.0.1:9")["nodes"]
    assert line.status is CheckStatus.ERROR
    assert "--nodes-url" in line.fix
