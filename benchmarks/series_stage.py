"""The processes around the benchmark of series discovery: a Prometheus that has scraped a whole cluster's series."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from benchmarks.adapter_stage import Backdrop
from benchmarks.cluster_of_series import Series, listed
from benchmarks.cores import on
from benchmarks.fleet_of_pods import QUEUE, Fleet
from demo.machine.exporter import running_exporter
from demo.machine.processes import ProcessFailedError
from demo.machine.prometheus import running_prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.client import HTTPResponse

    from benchmarks.cluster_of_series import Cluster
    from benchmarks.cores import Cores

RULES = Path(__file__).resolve().parents[1] / "helm" / "tidewatch" / "files" / "default-rules.yaml"
ASKED = Fleet(apps=16, pods_per_app=5, metrics=2, namespaces=8)
"""Apps beside those of the cluster; their values are known, and are requested while series are looked up."""
ASKED_APP = 8
"""An app whose HPA requests the gauge."""
ASK_SECONDS = 60.0
_PIECE_BYTES = 1024 * 1024
_LOOK_UPS = re.compile(r'prometheus_http_requests_total\{code="\d+",handler="/api/v1/series"\} (\S+)')


class SeriesStage:
    """A Prometheus with the cluster's series, and the metrics that an adapter must find in it."""

    def __init__(self, backdrop: Backdrop, series: int, names: int, expected: frozenset[str]) -> None:
        self.backdrop = backdrop
        self.series = series
        self.names = names
        self.expected = expected
        """The resources that the custom metrics API must list."""

    def scraped(self) -> int:
        """Return the number of series in the last scrapes; raises OSError."""
        found = _data(f"{self._url}/api/v1/query?query=sum(scrape_samples_scraped)")["result"]
        return int(found[0]["value"][1]) if found else 0

    def look_ups(self) -> int:
        """Return how many requests for series Prometheus has counted; raises OSError."""
        with _opened(f"{self._url}/metrics") as response:
            return sum(int(float(count)) for count in _LOOK_UPS.findall(response.read().decode()))

    def plain_look_ups(self) -> float:
        """Return the seconds that Prometheus takes for all look-ups of the rules at once if answers are only read."""
        began = time.monotonic()
        with on(self.backdrop.cores.others), ThreadPoolExecutor() as threads:
            list(threads.map(self._look_up, self._queries()))
        return time.monotonic() - began

    @contextmanager
    def asked_by_somebody_else(self) -> Iterator[None]:
        """Let another client look up the rules' series without a pause, which loads Prometheus but not the adapter."""
        over = threading.Event()
        failures: list[OSError] = []
        requester = threading.Thread(target=self._ask, args=(over, failures), name="somebody else", daemon=True)
        requester.start()
        try:
            yield
        finally:
            over.set()
            requester.join(ASK_SECONDS)
        if failures:
            raise ProcessFailedError(f"Prometheus does not tell its series: {failures[0]}")

    def _ask(self, over: threading.Event, failures: list[OSError]) -> None:
        try:
            with on(self.backdrop.cores.others):
                while not over.is_set():
                    for query in self._queries():
                        self._look_up(query)
        except OSError as e:
            failures.append(e)

    def _look_up(self, query: str) -> None:
        _drain(f"{self._url}/api/v1/series?{urllib.parse.urlencode({'match[]': query})}")

    @staticmethod
    def _queries() -> list[str]:
        return sorted({rule["seriesQuery"] for rule in yaml.safe_load(RULES.read_text(encoding="utf-8"))["rules"]})

    @property
    def _url(self) -> str:
        return self.backdrop.prometheus.url


@contextmanager
def series_stage(folder: Path, cluster: Cluster, cores: Cores, scrape_seconds: int) -> Iterator[SeriesStage]:
    """Run exporters and Prometheus, which may not have scraped them yet (`SeriesStage.scraped`)."""
    rules, objects = folder / "rules.yaml", folder / "objects"
    shutil.copyfile(RULES, rules)
    ASKED.write_objects(objects)
    texts, count, names, expected = _exposed(cluster)
    with ExitStack() as stack:
        stack.enter_context(on(cores.others))
        scrapes = [
            # A scrape that fails on a busy machine must not end the series whose values are requested.
            stack.enter_context(running_exporter(text, stamped=number == 0)).scrape_config(
                f"part-{number}", f"{scrape_seconds}s"
            )
            for number, text in enumerate(texts)
        ]
        prometheus = stack.enter_context(
            running_prometheus(folder / "prometheus", scrape_configs=scrapes, retention="1h")
        )
        yield SeriesStage(Backdrop(folder, ASKED, cores, prometheus, rules, objects), count, names, expected)


def _exposed(cluster: Cluster) -> tuple[list[str], int, int, frozenset[str]]:
    """Return the text of each target, the numbers of series and names, and the resources that they yield."""
    # Prometheus adds its target's labels to those that the fleet's series have.
    asked_series = [
        Series(ASKED.metric_name(1), {"namespace": "", "pod": "", "job": "", "instance": ""}),
        Series(QUEUE, {"namespace": "", "queue": "", "job": "", "instance": ""}),
    ]
    asked_lines = list(ASKED.gauge_lines(range(ASKED.apps)))
    texts, count = ["".join(asked_lines)], len(asked_lines)
    labels_of: dict[str, dict[str, str]] = {}
    for target in (asked_series, *cluster.targets()):
        of_target = list(target)
        for series in of_target:
            labels_of[series.name] = {**labels_of.get(series.name, {}), **series.labels}
        if target is not asked_series:
            texts.append("".join(series.line() for series in of_target))
            count += len(of_target)
    expected = listed(Series(name, labels) for name, labels in labels_of.items())
    return texts, count, len(labels_of), expected


def _data(url: str) -> dict[str, list[dict[str, list[str]]]]:
    with _opened(url) as response:
        data: dict[str, list[dict[str, list[str]]]] = json.load(response)["data"]
    return data


def _drain(url: str) -> None:
    with _opened(url) as response:
        while response.read(_PIECE_BYTES):
            pass


def _opened(url: str) -> HTTPResponse:
    response: HTTPResponse = urllib.request.urlopen(url, timeout=ASK_SECONDS)  # noqa: S310 - an address of ours on loopback
    return response
