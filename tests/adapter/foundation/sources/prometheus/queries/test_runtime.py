"""The time since when a Prometheus collects, as it says itself, and servers that do not say it."""

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


def asked(script: Callable[[Peer], None], query: str = "", timeout_seconds: float = 5.0) -> Started:
    with raw_server(script) as server, closing(Server(PrometheusSettings(f"{server.url}{query}"))) as asked_server:
        return ask_started(asked_server, timeout_seconds)


def test_a_real_one_tells_when_it_started_and_when_it_was_configured(tmp_path: Path) -> None:
    before = time.time()
    with (
        running_prometheus(tmp_path) as prometheus,
        closing(Server(PrometheusSettings(prometheus.url))) as server,
    ):
        first = ask_started(server, 5.0)
        assert before - 1 <= first.process <= first.configured <= time.time() + 1
        reload(prometheus)
        again = ask_started(server, 5.0)
        # It is told in whole seconds.
        assert (again.process, again.configured >= first.configured) == (first.process, True)
        prometheus.kill()
        with pytest.raises(PrometheusUnreachableError):
            ask_started(server, 5.0)
        prometheus.start_again()
        assert ask_started(server, 5.0).process > first.process


def test_a_new_one_misses_nothing_and_one_that_was_started_again_may(tmp_path: Path) -> None:
    with (
        scraped_prometheus(tmp_path, "some 1\n") as scraped,
        PrometheusClient(PrometheusSettings(scraped.url)) as client,
    ):
        new = client.started(5.0)
        scraped.wait_for("up")
        scraped.prometheus.kill()
        scraped.prometheus.start_again()
        again = client.started(5.0)
    assert new.configured == -math.inf
    assert again.configured >= again.process > new.process


def test_a_part_of_an_answer_does_not_tell_that_nothing_was_scraped_before() -> None:
    """A querier whose store is down answers without the store's series, and says so in a warning."""
    scraped = b'{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["no answer from store-0"]}'

    def script(peer: Peer) -> None:
        while (request := peer.read()) is not None:
            peer.answer(answer("2026-01-01T12:00:00Z") if "runtimeinfo" in request.target else scraped)

    with raw_server(script) as server, PrometheusClient(PrometheusSettings(server.url)) as client:
        for _ in range(2):
            with pytest.raises(UnexpectedAnswerError, match="may be partial: no answer from store-0"):
                client.started(5.0)


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
def test_what_it_says(body: bytes, found: Started) -> None:
    assert asked(answering(body)) == found


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
def test_one_that_does_not_tell(script: Callable[[Peer], None], error: type[PrometheusError]) -> None:
    with pytest.raises(error):
        asked(script)


def test_one_that_hangs_is_given_up() -> None:
    with pytest.raises(PrometheusTimeoutError):
        asked(never_answers, timeout_seconds=0.3)
