"""Servers that misbehave while they list series: what came before counts, the outcome is reported, nothing is held."""

from __future__ import annotations

import gzip
import json
import re
import time
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.prometheus.answers.answer_elements import SERIES_LIMITS, AnswerLimits
from adapter.foundation.sources.prometheus.errors import (
    AnswerTooLargeError,
    PrometheusError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
)
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from tests.support.raw_server import Peer, answering, raw_server

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 20_000
ENTRIES = [
    {"__name__": f"metric_{number % 50}", "namespace": "shop", "pod": f"web-{number}"} for number in range(COUNT)
]
WHOLE = json.dumps({"status": "success", "data": ENTRIES}, separators=(",", ":")).encode()
HALF = WHOLE[: len(WHOLE) // 2]
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def listed(
    url: str, *, limits: AnswerLimits = SERIES_LIMITS, timeout_seconds: float = 20.0
) -> tuple[int, PrometheusError | None, tuple[str, ...]]:
    """Return how many series came, how it ended, and the warnings."""
    count = 0
    with PrometheusClient(PrometheusSettings(url)) as client:
        answer = client.series("up", start=0, timeout_seconds=timeout_seconds, limits=limits)
        try:
            for label_sets in answer.batches(UNPACED):
                count += len(label_sets)
        except PrometheusError as error:
            return count, error, answer.warnings
    return count, None, answer.warnings


def stalls(peer: Peer) -> None:
    peer.read()
    peer.send(CHUNKED + chunk(HALF))
    peer.hang()


def drips(peer: Peer) -> None:
    peer.read()
    peer.send(CHUNKED + chunk(HALF))
    peer.drip(chunk(b'{"__name__":"m"},') * 100_000, seconds=0.01)


def never_ends(peer: Peer) -> None:
    peer.read()
    peer.send(CHUNKED + chunk(HALF.rpartition(b"{")[0]))
    while True:
        peer.send(chunk(b'{"__name__":"m"},' * 1000))


def is_cut_off(peer: Peer) -> None:
    peer.read()
    peer.send(CHUNKED + chunk(HALF))


def turns_to_garbage(peer: Peer) -> None:
    peer.read()
    peer.answer(HALF + b"\xff\x00<html>" * 100_000)


@pytest.mark.parametrize(
    ("script", "timeout_seconds", "expected"),
    [
        (stalls, 0.7, PrometheusTimeoutError),
        (drips, 0.7, PrometheusTimeoutError),
        (never_ends, 20.0, AnswerTooLargeError),
        (is_cut_off, 20.0, PrometheusUnreachableError),
    ],
)
def test_series_before_a_bad_end_are_returned(
    script: Callable[[Peer], None], timeout_seconds: float, expected: type[PrometheusError]
) -> None:
    with raw_server(script) as server:
        count, error, _ = listed(server.url, timeout_seconds=timeout_seconds)
    assert isinstance(error, expected)
    assert count > 0


def test_garbage_within_the_list_is_an_error() -> None:
    with raw_server(turns_to_garbage) as server:
        assert isinstance(listed(server.url)[1], UnexpectedAnswerError)


def test_an_error_status_at_the_end_is_an_error() -> None:
    body = WHOLE[:-1] + b',"status":"error","error":"expanding series: broken block"}'
    with raw_server(answering(body)) as server:
        _, error, _ = listed(server.url)
    assert isinstance(error, UnexpectedAnswerError)
    assert "broken block" in str(error)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (AnswerLimits(max_bytes=len(WHOLE) // 2), "more than .* bytes"),
        (AnswerLimits(max_samples=COUNT - 1), f"more than {COUNT - 1:,} samples or series"),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_reading_stops_at_a_limit(limits: AnswerLimits, message: str, *, compressed: bool) -> None:
    encoding = {"Content_Encoding": "gzip"} if compressed else {}
    with raw_server(answering(gzip.compress(WHOLE) if compressed else WHOLE, **encoding)) as server:
        count, error, _ = listed(server.url, limits=limits)
    assert isinstance(error, AnswerTooLargeError)
    assert re.search(message, str(error))
    assert 0 < count < COUNT


def test_as_many_series_as_requested_lead_to_a_warning() -> None:
    with raw_server(answering(WHOLE)) as server:
        count, error, warnings = listed(server.url, limits=AnswerLimits(max_samples=COUNT))
    assert (count, error) == (COUNT, None)
    assert warnings == (f"there may be more series than the {COUNT:,} that were requested",)


def test_a_warning_at_the_end_is_returned() -> None:
    body = WHOLE[:-1] + b',"warnings":["results truncated due to limit"]}'
    with raw_server(answering(body)) as server:
        assert listed(server.url) == (COUNT, None, ("results truncated due to limit",))


def test_only_the_beginning_of_an_endless_error_is_read() -> None:
    def script(peer: Peer) -> None:
        peer.read()
        peer.send(CHUNKED.replace(b"200 OK", b"502 Bad Gateway"))
        while True:
            peer.send(chunk(b"<p>no upstream</p>" * 1000))

    with raw_server(script) as server:
        count, error, _ = listed(server.url)
    assert (count, type(error)) == (0, PrometheusUnreachableError)


def test_the_connection_is_reused_after_a_refusal() -> None:
    refusal = b'{"status":"error","errorType":"bad_data","error":"no matcher"}'

    def script(peer: Peer) -> None:
        peer.read()
        peer.answer(refusal, "400 Bad Request")
        peer.read()
        peer.answer(WHOLE)
        # After the list, the server is asked for its time.
        peer.read()
        peer.answer(b'{"status":"success","data":{"resultType":"scalar","result":[%d,"%d"]}}' % ((time.time(),) * 2))

    with raw_server(script) as server, PrometheusClient(PrometheusSettings(server.url)) as client:
        with pytest.raises(QueryRefusedError, match="no matcher"):
            next(client.series("{}", start=0, timeout_seconds=20).batches(UNPACED))
        found = client.series("up", start=0, timeout_seconds=20).batches(UNPACED)
        assert sum(len(label_sets) for label_sets in found) == COUNT
        assert server.connections == 1


def test_the_connection_of_an_unfinished_answer_is_not_reused() -> None:
    with (
        raw_server(answering(WHOLE)) as server,
        PrometheusClient(PrometheusSettings(server.url, pool_size=1)) as client,
    ):
        for _ in range(3):
            batches = client.series("up", start=0, timeout_seconds=20).batches(UNPACED)
            assert next(batches)
            del batches
        assert server.connections == 3


def test_a_server_that_refuses_post_is_queried_by_get() -> None:
    def script(peer: Peer) -> None:
        while (request := peer.read()) is not None:
            if request.method == "POST":
                peer.answer(b"", "405 Method Not Allowed")
            else:
                peer.answer(WHOLE)

    with raw_server(script) as server:
        assert listed(server.url) == (COUNT, None, ())
        assert [request.method for request in server.requests] == ["POST", "GET"]
