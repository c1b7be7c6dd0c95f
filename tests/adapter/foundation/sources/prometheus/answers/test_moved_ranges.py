"""Servers that keep less than a range, and move its start to the time from which on they keep samples."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.sources.prometheus.queries.connection import range_values
from tests.adapter.foundation.sources.prometheus.answers.matrix_bodies import body, one
from tests.support.raw_server import Peer, raw_server

if TYPE_CHECKING:
    from collections.abc import Sequence


class Forgetful:
    """Answers a range as Mimir does: from the time on that it keeps (`-querier.max-query-lookback`, or the retention).

    That time advances with each request, and is between two steps. The series `late` has its first sample at 1000.
    """

    def __init__(self, kept_from: float) -> None:
        self.kept_from = kept_from
        self.starts: list[float] = []

    def __call__(self, peer: Peer) -> None:
        while (request := peer.read()) is not None:
            sent = parse_qs(request.body.decode() or urlsplit(request.target).query)
            start, end, step = (float(sent[name][0]) for name in ("start", "end", "step"))
            self.starts.append(start)
            times = np.arange(max(start, self.kept_from), end + 0.0005, step).round(3).tolist()
            points = {"a": times, "late": [at for at in times if at >= 1000]}
            peer.answer(
                body(*(one(*((at, f"{at // 60}") for at in points[pod]), pod=pod) for pod in points if points[pod]))
            )
            self.kept_from += 0.069


@pytest.mark.parametrize(
    ("kept_from", "found", "starts"),
    [
        pytest.param(0.0, {"a": range(600, 1201, 60), "late": range(1020, 1201, 60)}, [600], id="all is kept"),
        pytest.param(660.0, {"a": range(660, 1201, 60), "late": range(1020, 1201, 60)}, [600], id="from a step on"),
        pytest.param(725.098, {"a": range(780, 1201, 60), "late": range(1020, 1201, 60)}, [600, 780], id="a part"),
        pytest.param(
            779.95, {"a": range(840, 1201, 60), "late": range(1020, 1201, 60)}, [600, 780, 840], id="just passed"
        ),
        pytest.param(1195.5, {"a": [1200], "late": [1200]}, [600, 1200], id="less than a step"),
        pytest.param(5000.0, {}, [600], id="nothing"),
    ],
)
def test_a_server_that_keeps_less_than_the_range_is_asked_for_the_steps_that_it_keeps(
    kept_from: float, found: dict[str, Sequence[int]], starts: list[float]
) -> None:
    script = Forgetful(kept_from)
    with raw_server(script) as server, PrometheusClient(PrometheusSettings(server.url)) as client:
        answer = client.range("load", start=600, end=1200, step_seconds=60, timeout_seconds=10)
    assert {series.labels["pod"]: list(series.timestamps) for series in answer.series} == {
        pod: list(times) for pod, times in found.items()
    }
    assert all(
        value == at // 60
        for series in answer.series
        for at, value in zip(series.timestamps, series.values, strict=True)
    )
    assert script.starts == starts


@pytest.mark.parametrize(
    ("kept_from", "first", "starts"), [(0.0, 600, [600]), (725.098, 780, [600, 780]), (779.95, 840, [600, 780, 840])]
)
def test_the_history_of_a_backtest_begins_at_the_first_step_that_the_server_keeps(
    kept_from: float, first: int, starts: list[float]
) -> None:
    script = Forgetful(kept_from)
    with raw_server(script) as server:
        values = range_values(PrometheusSettings(server.url), "load", 600, 1200, 60, 10)
    assert [[at for at, _ in series] for series in values] == [
        list(range(first, 1201, 60)),
        list(range(1020, 1201, 60)),
    ]
    assert script.starts == starts
