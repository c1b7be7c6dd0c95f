"""An answer of another time is not used: our clock is compared with that of Prometheus."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from adapter.foundation.sources.prometheus.errors import UnexpectedAnswerError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from tests.support.raw_server import answering, raw_server

NOW = 1_800_000_000.4
BODY = b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1800000000,"1"]}]}}'


def values(at: float | None = None, **headers: str) -> list[float]:
    with (
        raw_server(answering(BODY, **headers)) as server,
        PrometheusClient(PrometheusSettings(server.url), clock=lambda: NOW) as client,
    ):
        answer = client.instant("up", timeout_seconds=5, at=at)
        return [sample.value for batch in answer.batches(UNPACED) for sample in batch]


@pytest.mark.parametrize("difference", [-59, 0, 59])
def test_clocks_may_differ_a_little(difference: float) -> None:
    assert values(Date=formatdate(NOW + difference, usegmt=True)) == [1.0]


@pytest.mark.parametrize(("difference", "words"), [(3600, "3600 s behind"), (-3600, "3600 s ahead of")])
def test_an_answer_of_another_time_is_refused(difference: float, words: str) -> None:
    with pytest.raises(UnexpectedAnswerError, match=words):
        values(Date=formatdate(NOW - 0.4 + difference, usegmt=True))


def test_without_a_date_nothing_is_compared() -> None:
    assert values() == values(Date="yesterday") == [1.0]


def test_a_query_with_a_given_time_is_refused_for_another_time_too() -> None:
    with pytest.raises(UnexpectedAnswerError, match="behind"):
        values(at=NOW - 1, Date=formatdate(NOW + 3600, usegmt=True))


@pytest.mark.parametrize("stated", [NOW + 3600, NOW - 600, 0.0])
def test_a_list_of_series_of_another_time_is_refused(stated: float) -> None:
    """With a clock that is an hour fast, Prometheus is queried about the future, and correctly knows of no series."""
    body = b'{"status":"success","data":[{"__name__":"up"}]}'
    with (
        raw_server(answering(body, Date=formatdate(stated, usegmt=True))) as server,
        PrometheusClient(PrometheusSettings(server.url), clock=lambda: NOW) as client,
        pytest.raises(UnexpectedAnswerError, match="this machine's clock"),
    ):
        list(client.series("up", start=NOW - 60, timeout_seconds=5).batches(UNPACED))
