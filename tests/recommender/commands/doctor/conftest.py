"""A scripted cluster and a real Prometheus for the recommender's doctor."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.recommender.commands.cluster_harness import cluster_server
from tests.recommender.commands.doctor.installation import OF_OTHER, SERIES, Installation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.prometheus import ScrapedPrometheus


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    """Return a Prometheus that scraped the recommendation of CoreDNS ten seconds ago, and `load` of two pods."""
    now = time.time() - 10.0
    samples = [f"{SERIES} 3 {now:.3f}", *(f'load{{pod="{pod}"}} {pod} {now:.3f}' for pod in (1, 2))]
    kinds = ["# TYPE tidewatch_recommended_replicas gauge", samples[0]]
    for metric, labels in (("replicas", OF_OTHER), ("resources", OF_OTHER), ("nodes", 'recommendation="other"')):
        kinds += [f"# TYPE tidewatch_recommended_{metric} gauge"] if metric != "replicas" else []
        kinds += [f"tidewatch_recommended_{metric}{{{labels}}} 3 {now:.3f}"]
    running = start_prometheus(history="\n".join([*kinds, "# TYPE load gauge", *samples[1:], "# EOF", ""]))
    running.wait_for(SERIES)
    return running


@pytest.fixture
def installation(tmp_path: Path, prometheus: ScrapedPrometheus) -> Iterator[Installation]:
    with cluster_server() as server:
        yield Installation(server, tmp_path, prometheus.url)
