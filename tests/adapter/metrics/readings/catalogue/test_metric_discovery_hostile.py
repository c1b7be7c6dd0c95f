"""Look-ups from real HTTP servers that misbehave: only one rule is affected, and it keeps its metrics and says why."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest

from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.metrics.readings.readings_settings import ReadingSettings
from tests.support.raw_server import Peer, raw_server
from tests.support.readings import make_harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.readings import Harness

RULES = "rules:" + "".join(
    f"""
- seriesQuery: '{{__name__=~"^{prefix}_.*",pod!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}, pod: {{resource: pod}}}}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
"""
    for prefix in ("good", "bad")
)
SETTINGS = ReadingSettings(discovery_deadline_seconds=60.0, metric_grace_seconds=60.0)
SHORT_DEADLINE = replace(SETTINGS, discovery_deadline_seconds=1.0)
"""For servers whose answers do not end: only the deadline ends these."""
MANY = 20_000


def answer(*names: str, count: int = 1, **more: object) -> bytes:
    """Return a list of series in which every name comes early, so that a short deadline comes after all of them."""
    entries = [
        {"__name__": name, "namespace": "shop", "pod": f"web-{number}"} for number in range(count) for name in names
    ]
    return json.dumps({"status": "success", "data": entries, **more}, separators=(",", ":")).encode()


GOOD = answer("good_a", "good_b")
BAD_BEFORE = answer("bad_a", "bad_b")


def serves(body: bytes, status: str = "200 OK") -> Callable[[Peer], None]:
    return lambda peer: peer.answer(body, status)


def stalls(peer: Peer) -> None:
    body = answer("bad_b", "bad_c", count=MANY)
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:-10])
    peer.hang()


def never_ends(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\n\r\n" + answer("bad_b", "bad_c", count=MANY).removesuffix(b"]}"))
    while True:
        peer.send(b',{"__name__":"bad_d","pod":"x","namespace":"shop"}' * 1000)


def huge_label(peer: Peer) -> None:
    peer.answer(answer("bad_b", "bad_c", count=MANY)[:-2] + b',{"__name__":"bad_d","text":"' + b"x" * 3_000_000)


@contextmanager
def harness_before(misbehave: Callable[[Peer], None]) -> Iterator[Harness]:
    """Run a harness whose second rule has found its metrics once, and meets a server that misbehaves from then on."""
    met: list[str] = []

    def script(peer: Peer) -> None:
        while (request := peer.read()) is not None:
            (selector,) = parse_qs(request.body.decode())["match[]"]
            if "good" in selector:
                peer.answer(GOOD)
            elif met:
                misbehave(peer)
            else:
                met.append(selector)
                peer.answer(BAD_BEFORE)

    with raw_server(script) as server, PrometheusClient(PrometheusSettings(server.url)) as client:
        settings = SHORT_DEADLINE if misbehave in {stalls, never_ends} else SETTINGS
        harness = make_harness(client, rules=RULES, settings=settings)
        harness.pass_time(1)
        yield harness


def names(harness: Harness) -> set[str]:
    return {metric.name for metric in harness.readings.catalogue.custom if metric.qualified.startswith("pods/")}


@pytest.mark.parametrize(
    ("misbehave", "message", "more"),
    [
        (serves(b"<html>" * 1000), "not JSON", set()),
        (serves(answer("bad_b", count=MANY)[:-100]), "not JSON|cannot be read", set()),
        (serves(b'{"status":"error","errorType":"bad_data","error":"no"}', "400 Bad Request"), "no", set()),
        (serves(b"", "503 Service Unavailable"), "HTTP 503", set()),
        (serves(answer("bad_b", "bad_c", warnings=["truncated"])), "warns: truncated", {"bad_c"}),
        (stalls, "within 1 s", {"bad_c"}),
        (never_ends, "more than 1,000,000 samples or series|within 1 s", {"bad_c"}),
        (huge_label, "one series has more than 1,048,576 bytes", {"bad_c"}),
    ],
    ids=["html", "cut JSON", "refused", "unavailable", "warning", "stalls", "endless", "huge label"],
)
def test_a_misbehaving_server_affects_only_its_rule_which_keeps_its_metrics(
    misbehave: Callable[[Peer], None], message: str, more: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    with harness_before(misbehave) as harness:
        # Far beyond the time of grace.
        for _ in range(3):
            harness.clock.forward(61)
            harness.readings.run_due()
        assert {"good_a", "good_b", "bad_a", "bad_b"} | more <= names(harness)
        assert (names(harness) >= {"bad_c"}) == bool(more)
        assert harness.counter("tidewatch_adapter_rules", state="failing") == 1
        assert harness.counter("tidewatch_adapter_rules", state="ok") == 1
    (record,) = [record for record in caplog.records if record.name == "adapter.metrics.readings.catalogue.rule_health"]
    assert "rules[1]" in record.getMessage()
    assert "keeps the metrics that it has" in record.getMessage()
    assert getattr(record, "fields", {}).items() >= {"rule": "rules[1]", "state": "failing", "reason": "series"}.items()
    assert record.levelname == "WARNING"
    assert re.search(message, record.getMessage())
