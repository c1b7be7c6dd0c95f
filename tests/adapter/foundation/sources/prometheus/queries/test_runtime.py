"""The time since which a Prometheus has collected data, as it states it, and servers that do not state it."""

from __future__ import annotations

import math
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.prometheus.errors import (
    AnswerTooLargeError,
    AuthenticationRefusedError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    UnexpectedAnswerError,
)
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.sources.prometheus.queries.runtime import Started, ask_started
from adapter.foundation.sources.prometheus.transport.server import Server
from demo.machine.prometheus import running_prometheus
from tests.support.prometheus import reload, scraped_prometheus
from tests.support.raw_server import Peer, answering, raw_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOON = 1_767_268_800.0
"""2026-01-01T12:00:00Z"""


def answer(start: str, more: str = "") -> bytes:
    return f'{{"status":"success","data":{{"startTime":"{start}"{more}}}}}'.encode()


def never_answers(peer: Peer) -> None:
    peer.read()
    peer.hang()


def started_of(script: Callable[[Peer], None], query: str = "", timeout_seconds: float = 5.0) -> Started:
    with raw_server(script) as server, closing(Server(PrometheusSettings(f"{server.url}{query}"))) as queried:
        return ask_started(queried, timeout_seconds)


def test_a_real_prometheus_reports_when_it_was_started_and_configured(tmp_path: Path) -> None:
    before = time.time()
    with (
        running_prometheus(tmp_path) as prometheus,
        closing(Server(PrometheusSettings(prometheus.url))) as server,
    ):
        first = ask_started(server, 5.0)
        assert before - 1 <= first.process <= first.configured <= time.time() + 1
        reload(prometheus)
        again = ask_started(server, 5.0)
        # The time is stated in whole seconds.
        assert (again.process, again.configured >= first.configured) == (first.process, True)
        prometheus.kill()
        with pytest.raises(PrometheusUnreachableError):
            ask_started(server, 5.0)
        prometheus.start_again()
        assert ask_started(server, 5.0).process > first.process


def test_a_new_prometheus_lacks_no_history_and_a_restarted_one_may(tmp_path: Path) -> None:
    with (
        scraped_prometheus(tmp_path, "some 1\n") as scraped,
        PrometheusClient(PrometheusSettings(scraped.url)) as client,
    ):
        new = client.fetch_start(5.0)
        scraped.wait_for("up")
        scraped.prometheus.kill()
        scraped.prometheus.start_again()
        again = client.fetch_start(5.0)
    assert new.configured == -math.inf
    assert again.configured >= again.process > new.process


@pytest.mark.parametrize("names", [("up",), ("target_info",), ("up", "target_info")], ids=" and ".join)
def test_a_prometheus_that_received_samples_before_its_start_may_lack_some(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Prometheus makes `target_info` of what OpenTelemetry sends to it; only scraped targets have `up`."""
    samples = (f'# TYPE {name} gauge\n{name}{{job="shop/web"}} 1 {time.time() - 600}\n' for name in names)
    received = f"{''.join(samples)}# EOF\n"
    with (
        scraped_prometheus(tmp_path, history=received) as scraped,
        PrometheusClient(PrometheusSettings(scraped.url)) as client,
    ):
        found = client.fetch_start(5.0)
    assert found.configured >= found.process


def test_a_partial_answer_does_not_prove_that_nothing_was_scraped_before() -> None:
    """A querier whose store is down answers without the store's series, and says so in a warning."""
    scraped = b'{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["no answer from store-0"]}'

    def script(peer: Peer) -> None:
        while (request := peer.read()) is not None:
            peer.answer(answer("2026-01-01T12:00:00Z") if "runtimeinfo" in request.target else scraped)

    with raw_server(script) as server, PrometheusClient(PrometheusSettings(server.url)) as client:
        for _ in range(2):
            with pytest.raises(UnexpectedAnswerError, match="may be partial: no answer from store-0"):
                client.fetch_start(5.0)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (answer("2026-01-01T12:00:00Z"), Started(NOON, NOON)),
        (answer("2026-01-01T13:00:00.123456789+01:00"), Started(NOON + 0.123456, NOON + 0.123456)),
        (answer("2026-01-01T12:00:00Z", ',"lastConfigTime":"2026-01-01T12:00:30Z","x":1'), Started(NOON, NOON + 30)),
        (answer("2026-01-01T12:00:00Z", ',"lastConfigTime":"0001-01-01T00:00:00Z"'), Started(NOON, NOON)),
    ],
    ids=["start alone", "another zone", "both", "never configured"],
)
def test_start_and_configuration_times_are_read(body: bytes, found: Started) -> None:
    assert started_of(answering(body)) == found


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (answering(b"404 page not found", "404 Not Found"), UnexpectedAnswerError),
        (answering(b"no", "403 Forbidden"), AuthenticationRefusedError),
        (answering(b"Service Unavailable", "503 Service Unavailable"), PrometheusUnreachableError),
        (answering(answer("yesterday")), UnexpectedAnswerError),
        (answering(answer("2026-01-01T12:00:00")), UnexpectedAnswerError),
        (answering(b'{"status":"success","data":{}}'), UnexpectedAnswerError),
        (answering(b"<html>login</html>"), UnexpectedAnswerError),
        (answering(answer("2026-01-01T12:00:00Z", f',"x":"{"a" * 70_000}"')), AnswerTooLargeError),
    ],
    ids=["no such path", "forbidden", "not ready", "no time", "no zone", "no start", "a page", "large"],
)
def test_an_answer_without_a_valid_start_time_is_an_error(
    script: Callable[[Peer], None], error: type[PrometheusError]
) -> None:
    with pytest.raises(error):
        started_of(script)


def test_a_request_to_a_hanging_server_times_out() -> None:
    with pytest.raises(PrometheusTimeoutError):
        started_of(never_answers, timeout_seconds=0.3)
