"""Native histograms of a real Prometheus, beside float samples."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING

from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from tests.support.prometheus import with_native_histograms

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.prometheus import ScrapedPrometheus

PROTOBUF = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
GAUGE, HISTOGRAM = 1, 4


def varint(number: int) -> bytes:
    parts = []
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def whole(tag: int, number: int) -> bytes:
    return varint(tag << 3) + varint(number)


def double(tag: int, number: float) -> bytes:
    return varint(tag << 3 | 1) + struct.pack("<d", number)


def text(tag: int, content: bytes) -> bytes:
    return varint(tag << 3 | 2) + varint(len(content)) + content


def zigzag(number: int) -> int:
    return number * 2 if number >= 0 else -number * 2 - 1


def family(name: bytes, kind: int, value: bytes) -> bytes:
    """Return a MetricFamily of client_model's metrics.proto with one metric, preceded by its length."""
    label = text(1, b"path") + text(2, b"/")
    content = text(1, name) + whole(3, kind) + text(4, text(1, label) + value)
    return varint(len(content)) + content


def native_histogram() -> bytes:
    """Return a histogram of three observations in two neighbouring buckets of schema 0."""
    span = whole(1, zigzag(0)) + whole(2, 2)
    buckets = text(12, span) + whole(13, zigzag(1)) + whole(13, zigzag(1))
    zero = double(6, 0.001) + whole(7, 0)
    return text(7, whole(1, 3) + double(2, 4.5) + whole(5, zigzag(0)) + zero + buckets)


def test_native_histograms_are_skipped_and_counted(start_prometheus: Callable[..., ScrapedPrometheus]) -> None:
    server = start_prometheus(interval="1s", **with_native_histograms())
    gauge = text(2, double(1, 7.0))
    body = family(b"requests", HISTOGRAM, native_histogram()) + family(b"load", GAUGE, gauge)
    server.exporter.content = (PROTOBUF, body)
    server.wait_for('count({__name__=~"requests|load"} offset 1s) == 2')
    with PrometheusClient(PrometheusSettings(server.url)) as client:
        answer = client.instant('{__name__=~"requests|load"}', at=time.time(), timeout_seconds=10)
        (sample,) = [sample for batch in answer.batches(UNPACED) for sample in batch]
        assert (sample.labels["__name__"], sample.value) == ("load", 7.0)
        assert answer.histograms_skipped == 1
        (quantile,) = next(client.instant("histogram_count(requests)", timeout_seconds=10).batches(UNPACED))
        assert quantile.value == 3
