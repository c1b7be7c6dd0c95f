"""The sources of nodes and pods (none, a folder, or the watches of a cluster), and the rights that they need."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, cast

import pytest
from prometheus_client import CollectorRegistry

from adapter.commands.nodes.cluster import node_source
from adapter.foundation.options.clients import ObjectSettings
from adapter.foundation.options.cluster import ClusterSettings
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.runtime.process_telemetry import TaskMetrics
from adapter.foundation.service.runtime.tasks import Tasks
from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchMetrics
from adapter.foundation.time.pace import UNPACED
from adapter.nodes.model.scheduling_settings import SchedulingSettings
from tests.adapter.commands.nodes.harness import OBJECTS
from tests.support.fake_apiserver import FakeApiServer
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from adapter.commands.nodes.cluster import NodeSource
    from adapter.foundation.service.server.context import WorkerContext


class Context:
    """A worker, reduced to the tasks, which are all that a source uses."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.tasks = Tasks(TaskMetrics(self.registry, "p"))


@pytest.fixture(name="context")
def _context() -> Iterator[Context]:
    context = Context()
    yield context
    assert not context.tasks.stop(10.0)


def source_of(context: Context, objects: ObjectSettings | None, begin: threading.Event | None = None) -> NodeSource:
    watches = WatchMetrics(context.registry, "p")
    settings = SchedulingSettings()
    if begin is None:
        begin = threading.Event()
        begin.set()
    return node_source(objects, settings, cast("WorkerContext", context), watches, UNPACED, lambda: None, begin)


def cluster(folder: Path | None = None, kubeconfig: Path | None = None) -> ObjectSettings:
    return ObjectSettings(files=folder, cluster=ClusterSettings(kubeconfig, None))


def test_without_a_cluster_there_are_no_nodes_and_no_waiting(context: Context) -> None:
    source = source_of(context, None)
    assert source.has_tried_lists()
    assert source.facts().nodes is None


def test_nodes_are_read_from_a_folder(context: Context, tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text(json.dumps(OBJECTS))
    facts = source_of(context, cluster(tmp_path)).facts()
    assert [node.name for node in facts.nodes or ()] == ["node-1", "node-2", "node-3"]
    assert facts.why_unknown == ""


def test_a_folder_without_files_is_a_usage_error(context: Context, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no"):
        source_of(context, cluster(tmp_path))


def test_a_missing_kubeconfig_is_a_usage_error_that_suggests_objects(context: Context, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="or set --objects to a folder to run without a cluster"):
        source_of(context, cluster(kubeconfig=tmp_path / "missing"))


def test_nothing_is_listed_before_the_begin_event(context: Context, tmp_path: Path) -> None:
    begin = threading.Event()
    with FakeApiServer() as server:
        source = source_of(context, cluster(kubeconfig=server.kubeconfig(tmp_path / "kubeconfig")), begin)
        assert not source.has_tried_lists()
        assert server.requests == []
        begin.set()
        until(source.has_tried_lists)
        assert server.asked("list", "nodes")
        assert not context.tasks.stop(10.0)
