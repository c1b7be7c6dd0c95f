"""Fixtures of a real control plane, and pytest's reports about it: tests left out, and logs of failed tests."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

import pytest

from demo.machine.prometheus import Access, running_prometheus
from tests.e2e.controlplane import network, programs
from tests.e2e.controlplane.cluster import Cluster, running_cluster
from tests.e2e.controlplane.images import images
from tests.e2e.controlplane.logs import LogMarks
from tests.e2e.controlplane.pod_metrics import PodMetrics
from tests.e2e.controlplane.processes import Options
from tests.support.prometheus import ScrapedPrometheus

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

NEEDS_PODS: Final = "needs_pods"
_MARKER: Final = f"{NEEDS_PODS}: the adapter's pods run as processes, which takes namespaces; not run without them"
_MARKS: Final = pytest.StashKey[LogMarks]()
_NOT_RUN: Final = "not run: "


@pytest.fixture(scope="session")
def kubernetes_programs() -> programs.Programs:
    """Return the control plane's programs, already built: those of E2E_KUBERNETES, or of the newest pinned version."""
    return programs.control_plane(os.environ.get("E2E_KUBERNETES", programs.NEWEST))


@pytest.fixture(scope="session")
def cluster(kubernetes_programs: programs.Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield one cluster for all tests that can share it: HPA sync every 4 s, HPAScaleToZero, no scheduler.

    Its controllers may send so many requests that tests with hundreds of objects do not wait for them.
    """
    folder = tmp_path_factory.mktemp("cluster") / "cluster"
    version = os.environ.get("E2E_KUBERNETES", programs.NEWEST)
    options = Options(kubernetes=version, controller_queries_per_second=500)
    with running_cluster(folder, kubernetes_programs, network.current(), options, images()) as running:
        yield running


@pytest.fixture
def start_cluster(
    kubernetes_programs: programs.Programs, tmp_path: Path
) -> Callable[[Options], AbstractContextManager[Cluster]]:
    """Return a function that starts a cluster of its own for a test that needs other options, or that breaks it."""

    def start(options: Options) -> AbstractContextManager[Cluster]:
        return running_cluster(tmp_path / "cluster", kubernetes_programs, network.current(), options, images())

    return start


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield a namespace for this test alone; its deletion may go on while the next test starts."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_"))[:40].strip("-")
    name = f"{words}-{os.urandom(3).hex()}"
    cluster.client.create("/api/v1/namespaces", {"metadata": {"name": name}})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    cluster.wait_for("the namespace's service account", lambda: cluster.client.find(account))
    yield name
    cluster.client.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def pod_metrics(cluster: Cluster) -> Iterator[PodMetrics]:
    """Yield the series that ordinary pods would export, set by tests, for pods that exist."""
    with PodMetrics.running(cluster.client) as metrics:
        yield metrics


@pytest.fixture(scope="session")
def prometheus(
    cluster: Cluster, pod_metrics: PodMetrics, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ScrapedPrometheus]:
    """Yield a real Prometheus that scrapes `pod_metrics` every second, at an address that pods can reach."""
    folder = tmp_path_factory.mktemp("prometheus")
    scrape = [pod_metrics.scrape_config()]
    with running_prometheus(folder, scrape_configs=scrape, access=Access(host=cluster.network.host)) as running:
        yield ScrapedPrometheus(running, pod_metrics.exporter)


def add_marker(config: pytest.Config) -> None:
    """Register the marker of tests that need running pods."""
    config.addinivalue_line("markers", _MARKER)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs what this machine does not allow."""
    why = network.current().why_loopback
    if why and item.get_closest_marker(NEEDS_PODS):
        pytest.skip(f"{_NOT_RUN}{why}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Remember how long the logs were when the test began."""
    if isinstance(item, pytest.Function) and isinstance(found := item.funcargs.get("cluster"), Cluster):
        item.stash[_MARKS] = LogMarks(found.plane)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the cluster's programs wrote during a failed test, and keep all of it."""
    report = yield
    if report.when == "call" and report.failed and (marks := item.stash.get(_MARKS, None)):
        report.sections.extend(marks.kept(item.name))
    return report


def report_what_was_not_run(terminalreporter: pytest.TerminalReporter) -> None:
    """Report the number of tests that were not run, apart from those that passed."""
    skipped = terminalreporter.stats.get("skipped", [])
    left_out = [report for report in skipped if _NOT_RUN in str(report.longrepr)]
    if left_out:
        terminalreporter.write_line(
            f"{len(left_out)} tests were not run: {network.current().why_loopback}", yellow=True
        )
