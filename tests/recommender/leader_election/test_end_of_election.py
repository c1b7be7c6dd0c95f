"""The end of an election in a process that goes on serving for its `--shutdown-delay`."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from adapter.foundation.service.runtime.tasks import Tasks
from adapter.foundation.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from recommender.commands.run.leading import begin_election
from recommender.leader_election.lease_events import LeaseMetrics
from recommender.leader_election.lease_settings import LeaseSettings
from recommender.running.effects.writes_at_shutdown import Writes
from tests.support.object_apiserver import ObjectApiServer
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


@dataclass
class Runs:
    """Records how runs of tasks have ended."""

    ended_with: list[str] = field(default_factory=list)

    def add_task(self, task: str, overdue: Callable[[], bool]) -> None:
        assert not overdue(), task

    def record_run(self, task: str, result: str) -> None:
        self.ended_with.append(f"{task}: {result}")


@dataclass
class Host:
    """A process that runs tasks, and calls its callbacks where a real one is asked to end."""

    tasks: Tasks
    callbacks: list[Callable[[], None]] = field(default_factory=list)

    def on_stopping(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)


def test_an_election_that_ended_by_a_release_is_no_failed_task(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ObjectApiServer() as server:
        access = from_kubeconfig(str(server.kubeconfig(tmp_path / "config")))
        objects = ObjectClient(KubernetesClient(access, RequestDeadlines(2.0, 1.0, 4.0)))
        runs = Runs()
        host = Host(Tasks(runs))
        wake = threading.Event()
        metrics = LeaseMetrics(CollectorRegistry(), "test", wake.set)
        lease = LeaseSettings(namespace="shop", name="leader", identity="pod")
        elector = begin_election(lease, host, objects, Writes(objects), metrics)
        until(elector.is_leader)
        wake.clear()
        for callback in host.callbacks:
            callback()
        # The elector notices the release at its next round, and reports the end of the leadership.
        assert wake.wait(10.0)
        assert host.tasks.stop(10.0) == ()
    assert runs.ended_with == []
    assert "a task failed and will be retried" not in caplog.messages
