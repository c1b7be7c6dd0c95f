"""What the log says of queries whose failures tenants read in short: each cause once, and only of values in use."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from recommender.running.queries.query_values import QueryValues
from tests.support.raw_server import raw_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from tests.support.raw_server import Peer

QUERY = "sum(rate(load[2m]))"
ANSWER = '{"status":"success","data":{"resultType":"vector","result":[]}}'


@contextmanager
def asked(said: list[str]) -> Iterator[QueryValues]:
    """Yield the values of a Prometheus that fails with the last of these words; it answers if they are empty."""

    def answer(peer: Peer) -> None:
        while peer.read() is not None:
            peer.answer((said[-1] or ANSWER).encode(), "502 Bad Gateway" if said[-1] else "200 OK")

    with raw_server(answer) as server:
        values = QueryValues(PrometheusClient(PrometheusSettings(server.url)), UNPACED, 5.0, is_public=True)
        try:
            yield values
        finally:
            values.close()


def details(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the end of what Prometheus said, of each logged failure."""
    failures = [record for record in caplog.records if record.levelno == logging.WARNING]
    return [record.__dict__["fields"]["error"].rpartition(": ")[2] for record in failures]


def test_each_cause_of_a_lasting_failure_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    first, later = "no answer of store-0.bank.svc", "no answer of store-1.bank.svc, certificate expired"
    said = [first]
    with asked(said) as values:
        found: set[str] = set()
        for words in (first, "no answer of store-2.bank.svc", later, first, later):
            said.append(words)
            value = values.value(QUERY)
            assert isinstance(value, Unknown)
            found.add(value.reason)
        assert details(caplog) == [first, later]
        assert len(found) == 1
        said.append("")
        values.value(QUERY)
        assert caplog.messages[-1] == "Prometheus answers again"
        said.append(first)
        values.value(QUERY)
        assert details(caplog) == [first, later, first]


def test_a_failure_with_ever_new_words_is_logged_a_few_times(caplog: pytest.LogCaptureFixture) -> None:
    said = [""]
    with asked(said) as values:
        for number in range(15):
            said.append(f"no answer of store-{'a' * (number + 1)}.bank.svc")
            values.value(QUERY)
    assert len(details(caplog)) == 10


def test_a_look_up_that_can_do_without_an_answer_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with asked(["no answer of store-0.bank.svc"]) as values:
        assert values.whole_value(QUERY, Observed(3.0, 1000.0), 45.0, 0.1) is None
        assert values.spacing_seconds(QUERY, 1000.0) is None
        assert not caplog.records
        values.value(QUERY)
        assert details(caplog) == ["no answer of store-0.bank.svc"]
