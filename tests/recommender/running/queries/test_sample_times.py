"""A value is as old as the samples behind it, and an answer with another time counts for that time."""

from __future__ import annotations

import json
import math
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.sources.prometheus.answers.decoding import Sample
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from recommender.running.queries.query_values import QueryValues
from recommender.running.queries.sample_times import times_of, times_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.prometheus import ScrapedPrometheus

AT = 10_000.0
OLD_SECONDS = 253
ENDED_SECONDS = 400


@pytest.mark.parametrize(
    ("query", "by", "expected"),
    [
        ("x", (), 'label_replace(max (timestamp(x)), "tidewatch_part", "0", "", "")'),
        (
            'sum by (ns) (rate(x{a="b"}[1m]))',
            ("ns", "name"),
            'label_replace(max by (ns, name) (timestamp(x{a="b"})), "tidewatch_part", "0", "", "")',
        ),
        (
            '{"http.requests"}',
            ("k8s.namespace.name", "name"),
            (
                'label_replace(max by ("k8s.namespace.name", name) (timestamp({__name__="http.requests"})), '
                '"tidewatch_part", "0", "", "")'
            ),
        ),
        (
            "x / on () y",
            (),
            (
                'label_replace(max (timestamp(x)), "tidewatch_part", "0", "", "")'
                ' or label_replace(max (timestamp(y)), "tidewatch_part", "1", "", "")'
            ),
        ),
        ("x + x", (), 'label_replace(max (timestamp(x)), "tidewatch_part", "0", "", "")'),
        ("x offset 1d", (), ""),
        ("x offset 90s", (), 'label_replace(max (timestamp(x offset 90000ms)), "tidewatch_part", "0", "", "")'),
        ("x - x offset 90s", (), 'label_replace(max (timestamp(x)), "tidewatch_part", "0", "", "")'),
        ("max_over_time(x[5m:] @ 100)", (), ""),
        ("vector(3)", (), ""),
        ("not ( promql", (), ""),
    ],
)
def test_the_times_of_all_selectors_are_queried(query: str, by: tuple[str, ...], expected: str) -> None:
    assert times_query(query, by).text == expected


def row(value: float, part: str = "0", **labels: str) -> Sample:
    return Sample({"tidewatch_part": part, **labels}, value, AT)


@pytest.mark.parametrize(
    ("query", "by", "rows", "expected"),
    [
        ("x", (), [row(AT - 7)], AT - 7),
        ("x / y", (), [row(AT - 7), row(AT - 90, "1")], AT - 90),
        ("vector(3)", (), [], AT),
        ("not ( promql", (), [], AT - 300),
        ("rate(x[10m] smoothed)", (), [], AT - 600),
        ("rate(x[1m] smoothed) / rate(x[1m] smoothed offset 1d)", (), [], AT - 300),
        ("rate(x[10m] smoothed offset 2m)", (), [], AT - 720),
        ("max_over_time(new_function(x)[10m:1m])", (), [], AT - 900),
        ("rate(x[1e3] smoothed)", (), [], AT - 1000),
        ("rate(x[1m] smoothed offset (1h + 1h))", (), [], -math.inf),
        ("max_over_time(x[10m:])", (), [], AT - 900),
        ("max_over_time(x[10m:])", ("ns",), [row(AT - 1, ns="b")], AT - 900),
        (" + ".join(f"sum(rate(x{number}[10m]))" for number in range(500)), (), [], AT - 600),
        ("x", ("ns",), [row(AT - 7, ns="a"), row(AT - 90, ns="b")], AT - 7),
        ("rate(x[2m])", ("ns",), [row(AT - 1, ns="b")], AT - 120),
        ("x", ("ns",), [row(AT - 40)], AT - 40),
        ("x", (), [row(AT + 100)], AT),
        # A value without its samples: a second server, which has no such series, was asked for their times.
        ("sum(x)", (), [], AT - 300),
        ("sum(rate(x[10m]))", (), [], AT - 600),
        ("x / y", (), [row(AT - 7)], AT - 300),
        ("x or y", (), [], AT - 300),
        # A value that needs none of them.
        ("x or y", (), [row(AT - 7, "1")], AT - 7),
        ("x unless y", (), [row(AT - 7)], AT - 7),
        ("sum(x) or vector(0)", (), [], AT),
        ("sum(x) + scalar(y)", (), [row(AT - 7)], AT - 7),
        ("absent(x)", (), [], AT),
        ("x offset 1d", (), [], AT),
    ],
    ids=[
        *(
            "newest",
            "oldest selector",
            "constant",
            "unreadable",
            "range of later PromQL",
            "offset",
            "short offset",
            "subquery of later PromQL",
            "range as a number",
            "computed offset",
            "subquery",
            "subquery for another target",
            "more characters than are read",
            "own",
            "own has ended",
            "no labels",
            "future",
        ),
        *("no samples", "no samples in a range", "no samples of one", "no samples of either"),
        *("one of two", "nothing to exclude", "or a constant", "no number", "absent", "of another time"),
    ],
)
def test_a_value_is_as_old_as_its_samples(query: str, by: tuple[str, ...], rows: list[Sample], expected: float) -> None:
    assert times_of(times_query(query, by), [Sample({"ns": "a"}, 1.0, AT)], rows, AT) == [expected]


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    now = time.time()
    lines = ["# TYPE load gauge"]
    for name, newest in (("old", OLD_SECONDS), ("new", -600), ("ended", ENDED_SECONDS)):
        lines += [f'load{{name="{name}"}} 20 {now - ago}' for ago in range(3600, newest, -15)]
        lines.append(f'load{{name="{name}"}} 20 {now - newest}')
    return start_prometheus(history="\n".join([*lines, "# EOF", ""]))


@pytest.fixture
def ask() -> Iterator[Callable[..., QueryValues]]:
    made: list[QueryValues] = []

    def asking(url: str) -> QueryValues:
        values = QueryValues(PrometheusClient(PrometheusSettings(url)), UNPACED, 5.0)
        made.append(values)
        return values

    yield asking
    for values in made:
        values.close()


@pytest.mark.parametrize(
    ("query", "age"),
    [
        ('sum(load{name="old"})', OLD_SECONDS),
        ('sum(rate(load{name="old"}[10m]))', OLD_SECONDS),
        ('sum(load{name="new"}) + scalar(sum(load{name="old"}))', OLD_SECONDS),
        ('sum(load{name="new"})', 0),
        ('sum(rate(load{name="ended"}[10m]))', ENDED_SECONDS),
        ('sum(rate(load{name="ended"}[10m])) + scalar(sum(load{name="new"}))', ENDED_SECONDS),
        ('sum(load{name="new"}) or sum(rate(load{name="never"}[10m]))', 0),
        ('sum(load{name="old"} offset 30s)', OLD_SECONDS),
        ('sum(load{name="new"} offset 2m)', 120),
        ("vector(3)", 0),
        ('sum(load{name="ended"}) or vector(0)', 0),
    ],
)
def test_the_age_of_a_value_is_that_of_its_newest_sample(
    prometheus: ScrapedPrometheus, ask: Callable[..., QueryValues], query: str, age: float
) -> None:
    found = ask(prometheus.url).value(query)
    assert isinstance(found, Observed)
    # The samples are as old as the test module by now.
    assert age - 45 <= time.time() - found.time <= age + 45


def test_each_target_has_the_age_of_its_own_samples(
    prometheus: ScrapedPrometheus, ask: Callable[..., QueryValues]
) -> None:
    found = ask(prometheus.url).samples("sum by (name) (load)", ("name",))
    assert isinstance(found, Observed)
    ages = {each.labels["name"]: time.time() - each.timestamp for each in found.value}
    assert ages["old"] >= OLD_SECONDS - 5
    assert ages["new"] < 45


@contextmanager
def stating(seconds_from_now: float | None, *warnings: str) -> Iterator[str]:
    """Run a server whose answers state another time than the requested one; None stands for 1970.

    Requested is the last whole second, so the present can be more than the allowed second ahead of it.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            stated = 0.0 if seconds_from_now is None else time.time() + seconds_from_now
            # The same answer to the query for the server's time is no time, as its value is another one.
            result = [{"metric": {}, "value": [stated, "20000"]}]
            data = {"resultType": "vector", "result": result}
            body = json.dumps({"status": "success", "data": data, "warnings": warnings}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def test_a_value_from_a_computed_range_has_no_known_age(ask: Callable[..., QueryValues]) -> None:
    with stating(-1.0) as url:
        found = ask(url).value("sum(rate(x[2 * 1h]))")
    assert isinstance(found, Unknown)
    assert found.reason.endswith("looks: write its ranges and offsets as durations, as in [2h]")


@pytest.mark.parametrize(("stated", "age"), [(None, 1.7e9), (-600.0, 600.0), (-3600.0, 3600.0)])
def test_an_answer_with_another_time_is_as_old_as_that_time(
    ask: Callable[..., QueryValues], stated: float | None, age: float
) -> None:
    with stating(stated) as url:
        found = ask(url).value("vector(20000)")
    assert isinstance(found, Observed)
    assert time.time() - found.time >= age - 5


def test_an_answer_from_the_future_is_not_a_value(ask: Callable[..., QueryValues]) -> None:
    with stating(3600.0) as url:
        found = ask(url).value("vector(20000)")
    assert isinstance(found, Unknown)
    assert "s in the future: check its clock" in found.reason


@pytest.mark.parametrize(
    ("warning", "is_known"),
    [
        ("PromQL info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket", True),
        ("PromQL info: ignored histogram in max aggregation", False),
        ("a store did not answer", False),
    ],
)
def test_a_remark_of_the_query_engine_leaves_the_value_known(
    ask: Callable[..., QueryValues], warning: str, *, is_known: bool
) -> None:
    with stating(-1.0, warning) as url:
        assert isinstance(ask(url).value("vector(20000)"), Observed) is is_known
