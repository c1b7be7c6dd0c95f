"""A real Prometheus for tests, which scrapes an exporter whose text they can change."""

from __future__ import annotations

import json
import math
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from demo.machine.exporter import Exporter, running_exporter
from demo.machine.processes import ProcessFailedError
from demo.machine.prometheus import PrometheusProcess, program, running_prometheus
from tests.support.backfill import backfill
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_SEEN_SECONDS = 30.0
_RELOAD_SECONDS = 30.0
_NO_SETTINGS: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ScrapedPrometheus:
    """A Prometheus that scrapes one exporter."""

    prometheus: PrometheusProcess
    exporter: Exporter

    @property
    def url(self) -> str:
        return self.prometheus.url

    def query(self, expression: str, at: float | None = None) -> list[dict[str, Any]]:
        """Return `data.result` of an instant query, fetched without any code of the product."""
        parameters = {"query": expression} | ({} if at is None else {"time": str(at)})
        address = f"{self.url}/api/v1/query?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(address, timeout=10) as response:
            result: list[dict[str, Any]] = json.load(response)["data"]["result"]
        return result

    def publish(self, text: str, *, seen: str) -> None:
        """Change what is exported, and wait until the query `seen` has a result, which only the new text may give."""
        self.exporter.publish(text)
        self.wait_for(seen)

    def wait_for(self, expression: str) -> None:
        """Wait until the query has a result at the last whole second, which is when the product evaluates queries.

        A sample of this second is not seen by a query of the same second that begins before the next one.
        """
        until(lambda: self.query(expression, at=math.floor(time.time())), _SEEN_SECONDS)


def reload(prometheus: PrometheusProcess) -> None:
    """Let the server read its configuration again; return when it is in force. Raises ProcessFailedError."""
    request = urllib.request.Request(f"{prometheus.url}/-/reload", method="POST")
    try:
        with urllib.request.urlopen(request, timeout=_RELOAD_SECONDS):
            pass
    except urllib.error.HTTPError as e:
        with e:
            refusal = e.read().decode(errors="replace").strip()
        raise ProcessFailedError(f"prometheus refused its configuration: {refusal}") from e


def with_native_histograms() -> dict[str, Any]:
    """Return the options of `scraped_prometheus` by which this machine's Prometheus scrapes native histograms."""
    command = [str(program("prometheus")), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=_RELOAD_SECONDS, check=True).stdout
    found = re.search(r"version v?(\d+)\.(\d+)", said)
    assert found, said
    # Prometheus 3.8 has this setting, and later versions ignore the flag.
    if (int(found[1]), int(found[2])) >= (3, 8):
        return {"scrape": {"scrape_native_histograms": True}}
    return {"extra_flags": ["--enable-feature=native-histograms"]}


@contextmanager
def scraped_prometheus(
    folder: Path,
    text: str = "",
    *,
    history: str = "",
    interval: str = "2s",
    extra_flags: Sequence[str] = (),
    stamped: bool = False,
    scrape: Mapping[str, object] = _NO_SETTINGS,
) -> Iterator[ScrapedPrometheus]:
    """Run an exporter with this text and a Prometheus that scrapes it; `history` is there from the start (`backfill`).

    `scrape` are further settings of the exporter's `scrape_config`.

    Samples of the past are the better choice for tests of one moment: Prometheus takes about five seconds to its first
    scrape, and a scrape that takes longer than the interval, on a busy machine, leaves a gap: for some seconds there
    is no series at all. Samples that are `stamped` leave none; they stay for five minutes when they are exported no
    more.
    """
    if history:
        backfill(folder, history)
    with (
        running_exporter(text, stamped=stamped) as exporter,
        running_prometheus(
            folder, scrape_configs=[{**exporter.scrape_config(interval=interval), **scrape}], extra_flags=extra_flags
        ) as prometheus,
    ):
        yield ScrapedPrometheus(prometheus, exporter)


@pytest.fixture(scope="module")
def start_prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., ScrapedPrometheus]]:
    """Yield a function that starts a Prometheus with `scraped_prometheus`'s arguments after the folder.

    All of them end with the module: dozens that scraped to the end of all tests would take processor time from them.
    """
    with ExitStack() as stack:

        def start(text: str = "", **options: Any) -> ScrapedPrometheus:  # noqa: ANN401 - handed on as they are
            folder = tmp_path_factory.mktemp("prometheus")
            return stack.enter_context(scraped_prometheus(folder, text, **options))

        yield start
