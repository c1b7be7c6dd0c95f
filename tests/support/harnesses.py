"""A Prometheus that holds given samples, an adapter with given rules before it, and ways to query both.

Samples lie in the past *and in the future*: nothing must be scraped, and the right values at a moment are known by
arithmetic. (Prometheus serves such blocks as any other, and accepts no newer samples until they are over.)
"""

from __future__ import annotations

import json
import re
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from demo.machine.prometheus import running_prometheus
from tests.support.backfill import backfill
from tests.support.prometheus import reload
from tests.support.serving import Adapter, Trust, running_adapter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess

    Course: TypeAlias = Callable[[int], object]
    """Returns the value of a series at a moment in Unix seconds."""

PODS = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
NAMESPACES = "{overrides: {namespace: {resource: namespace}}}"
HOUR_SECONDS = 3600
_QUERY_LOG = "queries.log"


def always(value: object) -> Course:
    """Return the course of a series that never changes."""
    return lambda _: value


def moments(now: int, step_seconds: int, past_seconds: int, future_seconds: int = HOUR_SECONDS) -> range:
    """Return the multiples of the step from the past into the future, in Unix seconds."""
    return range(now - now % step_seconds - past_seconds, now + future_seconds, step_seconds)


def samples(courses: Mapping[str, Course], at: Iterable[int]) -> list[str]:
    """Return the samples of each series at these moments, as lines of OpenMetrics."""
    times = list(at)
    return [f"{series} {course(moment)} {moment}" for series, course in sorted(courses.items()) for moment in times]


@contextmanager
def prometheus_with(folder: Path, lines: Iterable[str], *, logs_queries: bool = False) -> Iterator[PrometheusProcess]:
    """Run a Prometheus that holds these samples; with `logs_queries` it logs its queries (`queries_of`)."""
    backfill(folder, "\n".join([*lines, "# EOF", ""]))
    with running_prometheus(folder) as prometheus:
        if logs_queries:
            prometheus.configure({"global": {"query_log_file": str(folder / _QUERY_LOG)}})
            reload(prometheus)
        yield prometheus


@dataclass(frozen=True, slots=True)
class Harness:
    """A small cluster: its series, its objects, and the rules for them."""

    rules: str
    objects: Mapping[str, Any]
    samples_at: Callable[[int], Iterable[str]]
    """Returns all samples as lines of OpenMetrics, given the present in Unix seconds."""
    logs_queries: bool = False

    @contextmanager
    def prometheus(self, folder: Path) -> Iterator[PrometheusProcess]:
        """Run a Prometheus that holds the series."""
        with prometheus_with(folder, self.samples_at(int(time.time())), logs_queries=self.logs_queries) as running:
            yield running

    @contextmanager
    def adapter(
        self,
        folder: Path,
        trust: Trust,
        prometheus: PrometheusProcess,
        *flags: str,
        rules: str | Path | None = None,
        as_installed: bool = False,
    ) -> Iterator[Adapter]:
        """Run an adapter before this Prometheus, with the harness's rules or with others."""
        chosen = self.rules if rules is None else rules
        with running_adapter(
            folder,
            trust,
            *flags,
            prometheus_url=prometheus.url,
            rules=chosen,
            objects=self.objects,
            as_installed=as_installed,
        ) as running:
            yield running

    @contextmanager
    def running(
        self, folder: Path, trust: Trust, *flags: str, rules: str | Path | None = None
    ) -> Iterator[tuple[PrometheusProcess, Adapter]]:
        """Run both, for a test that harms them or counts their queries."""
        with (
            self.prometheus(folder / "prometheus") as prometheus,
            self.adapter(folder, trust, prometheus, *flags, rules=rules) as adapter,
        ):
            yield prometheus, adapter


def ask_prometheus(prometheus: PrometheusProcess, query: str, at: float) -> list[tuple[dict[str, str], str]]:
    """Return labels and value, as text, of an instant query, fetched without any code of the product."""
    found = _data(f"{prometheus.url}/api/v1/query?{urllib.parse.urlencode({'query': query, 'time': at})}")["result"]
    return [(sample["metric"], sample["value"][1]) for sample in found]


def series_now(url: str, selectors: Iterable[str], back_seconds: float) -> list[dict[str, str]]:
    """Return the series that Prometheus has, fetched without any code of the product."""
    now = time.time()
    parameters = [("match[]", one) for one in selectors] + [("start", str(now - back_seconds)), ("end", str(now))]
    found: list[dict[str, str]] = _data(f"{url}/api/v1/series?{urllib.parse.urlencode(parameters)}")
    return found


def queries_of(prometheus: PrometheusProcess) -> list[str]:
    """Return the text of all instant queries that Prometheus has logged so far."""
    lines = (prometheus.folder / _QUERY_LOG).read_text().splitlines()
    return [json.loads(line)["params"]["query"] for line in lines]


def data_queries_counted(prometheus: PrometheusProcess, adapter: Adapter) -> float:
    """Return how many instant queries Prometheus has counted, without the adapter's queries for the time."""
    return queries_counted(prometheus) - adapter.metric("tidewatch_adapter_prometheus_queries_total", kind="clock")


def queries_counted(prometheus: PrometheusProcess) -> int:
    """Return how many instant queries Prometheus has counted."""
    text = _read(f"{prometheus.url}/metrics").decode()
    counted = re.findall(r'^prometheus_http_requests_total\{.*handler="/api/v1/query".*\} (\S+)$', text, re.MULTILINE)
    return sum(int(float(number)) for number in counted)


def _data(address: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads(_read(address))["data"]


def _read(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=10) as response:
        body: bytes = response.read()
    return body
