"""The stand-in for Prometheus, and the judges of answers: right answers pass, and wrong ones do not."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from adapter.nodes.queries.refresher import SampleRefresher
from benchmarks.judging import WrongAnswerError
from benchmarks.kept_connection import Answer, get, measured
from benchmarks.node_answers import AnswerServer, NodeAnswers
from benchmarks.node_loads import CLASSES, class_of, mean_ratio
from benchmarks.score_answers import ScoreJudge
from benchmarks.scripted_cluster import node_address, node_name
from benchmarks.watcher_answers import WatcherJudge

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES = 70


@contextmanager
def served(nodes: int) -> Iterator[AnswerServer]:
    server = AnswerServer(NodeAnswers(nodes))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def priorities(scores: dict[str, int]) -> Answer:
    body = msgspec.json.encode([{"Host": name, "Score": score} for name, score in scores.items()])
    return Answer(200, b"", body)


def document(metrics: dict[str, dict[str, float]]) -> Answer:
    nodes = {
        name: {
            "metrics": [
                {"type": kind.partition(" ")[0], "operator": kind.partition(" ")[2], "value": value}
                for kind, value in values.items()
            ]
        }
        for name, values in metrics.items()
    }
    found = {"timestamp": 1, "window": {"end": 7}, "data": {"NodeMetricsMap": nodes}}
    return Answer(200, b"", msgspec.json.encode(found))


def right_metrics(number: int) -> dict[str, float]:
    mean = 100 * mean_ratio(class_of(number))
    return {"CPU AVG": mean, "CPU STD": 8.0, "Memory AVG": mean, "Memory STD": 8.0}


def test_the_product_reads_the_known_loads_from_the_stand_in() -> None:
    now = time.time()
    with served(NODES) as server, PrometheusClient(PrometheusSettings(f"http://127.0.0.1:{server.server_port}")) as one:
        result = SampleRefresher(one, SchedulingSettings()).refresh(now, None, None)
    cpu = result.samples.grids[LoadResource.CPU]
    assert not result.failures
    assert set(result.samples.grids) == set(LoadResource) - {LoadResource.GPU}
    assert server.answers.asked.queries == result.queries == 5
    assert server.answers.asked.times == 1
    for number in (0, 1, CLASSES, NODES - 1):
        row = cpu.values[cpu.nodes.index(node_address(number))]
        assert np.nanmean(row) == pytest.approx(mean_ratio(class_of(number)), abs=0.02)


def test_the_stand_in_refuses_all_but_built_in_queries() -> None:
    with served(1) as server:
        with pytest.raises(urllib.error.HTTPError, match="400") as refusal:
            urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/api/v1/query?query=up")
        refusal.value.close()
    assert server.answers.asked.refused == 1


def test_a_client_on_a_kept_connection_counts_answers_that_are_refused_by_the_judge() -> None:
    bodies: list[bytes] = []

    def judge(answer: Answer) -> None:
        bodies.append(answer.body)
        if len(bodies) == 2:
            raise WrongAnswerError("wrong")

    with served(1) as server:
        outcome = measured(server.server_port, [get("/asked"), get("/none")], judge, 6, warm_up=1)
    assert (outcome.requests, outcome.errors, outcome.reasons) == (6, 1, {"wrong": 1})
    assert b"ranges" in bodies[0]
    assert b"bad_data" in bodies[1]


SCORES = {node_name(0): 7, node_name(1): 5}
"""Scores of nodes at 10 and 39% on average."""


def test_scores_that_follow_from_the_loads_pass() -> None:
    ScoreJudge(list(SCORES), range(2)).two_policies(priorities(SCORES))


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ({node_name(0): 1}, "names"),
        (SCORES | {node_name(0): 11}, "between 0 and 10"),
        (SCORES | {node_name(0): 2}, "score 2, which must be"),
        (dict(reversed(SCORES.items())), "names"),
    ],
)
def test_wrong_scores_are_noticed(scores: dict[str, int], problem: str) -> None:
    with pytest.raises(WrongAnswerError, match=problem):
        ScoreJudge(list(SCORES), range(2)).two_policies(priorities(scores))


def test_scores_without_metrics_have_to_be_the_middle_one() -> None:
    judge = ScoreJudge(list(SCORES), range(2))
    judge.middle(priorities(dict.fromkeys(SCORES, 5)))
    with pytest.raises(WrongAnswerError, match="middle"):
        judge.middle(priorities(SCORES))


def test_a_filter_that_lets_a_hot_node_pass_is_noticed() -> None:
    numbers = [number for number in range(CLASSES) if mean_ratio(number) > 0.84]
    names = [node_name(number) for number in numbers]
    body = msgspec.json.encode({"NodeNames": names, "FailedNodes": {}, "Error": ""})
    with pytest.raises(WrongAnswerError, match="would be at"):
        ScoreJudge(names, numbers).filtered(Answer(200, b"", body))


def test_the_right_document_passes() -> None:
    judge = WatcherJudge(range(2))
    judge.plain(document({node_name(number): right_metrics(number) for number in range(2)}))
    assert judge.window_end == 7


@pytest.mark.parametrize(
    ("metrics", "problem"),
    [
        ({}, "0 nodes"),
        ({node_name(0): right_metrics(1)}, "CPU"),
        ({node_name(0): right_metrics(0) | {"CPU STD": 1.6}}, "STD"),
        ({node_name(5): right_metrics(5)}, "no node"),
    ],
)
def test_wrong_documents_are_noticed(metrics: dict[str, dict[str, float]], problem: str) -> None:
    with pytest.raises(WrongAnswerError, match=problem):
        WatcherJudge(range(1)).plain(document(metrics))
