from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.object_index import ObjectIndex
from tests.adapter.foundation.sources.kubernetes.watches.reflecting import PODS, SETTINGS, MetadataReflector
from tests.support.fake_apiserver import FakeApiServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from threading import Event

    from adapter.foundation.sources.kubernetes.lists.list_watch import WatchSettings

QUICK = RequestDeadlines(connect=2.0, silence=3.0, total=10.0)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    # The loopback is never reached through a proxy, whatever the machine is set to.
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as running:
        yield running


@pytest.fixture
def client(server: FakeApiServer, tmp_path: Path) -> KubernetesClient:
    return KubernetesClient(from_kubeconfig(str(server.kubeconfig(tmp_path / "kubeconfig"))), QUICK)


class Tasks:
    """Run tasks as a process would, and check that each ends when it is stopped."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []

    def start(self, name: str, run: Callable[[Event], None]) -> None:
        self.names.append(name)
        thread = threading.Thread(target=self._run_guarded, args=(run,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(5.0)
            assert not thread.is_alive(), f"{thread.name} did not end"
        assert self._failures == []

    def _run_guarded(self, run: Callable[[Event], None]) -> None:
        try:
            run(self._stop)
        except BaseException as error:  # noqa: BLE001 - reported to the test by `end`
            self._failures.append(error)


@pytest.fixture
def tasks(server: FakeApiServer) -> Iterator[Tasks]:
    assert server.url
    made = Tasks()
    yield made
    made.end()


@pytest.fixture
def start(client: KubernetesClient, tasks: Tasks) -> Callable[..., MetadataReflector]:
    def started(settings: WatchSettings = SETTINGS) -> MetadataReflector:
        reflector = MetadataReflector(client, PODS, ObjectIndex(), settings)
        tasks.start("watch pods", reflector.run)
        return reflector

    return started
