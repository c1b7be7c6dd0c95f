"""Sources of nodes and pods: watches of a cluster, a folder of files, or none."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.files.folder import ClusterFolder
from adapter.foundation.cluster.files.reading import ClusterFilesError
from adapter.foundation.cluster.watch.watch import ClusterWatch
from adapter.foundation.options.clients import ObjectSettings, kubernetes_client
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.kubernetes.lists.list_watch import WatchSettings
from adapter.nodes.snapshot.cluster_facts import NodeFacts, needs_of, node_facts

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.sources.kubernetes.kubernetes_telemetry import WatchTelemetry
    from adapter.foundation.time.pace import Pace
    from adapter.nodes.model.scheduling_settings import SchedulingSettings

_log = logging.getLogger(__name__)

LONGEST_WAIT_SECONDS: Final = 5.0
"""How long the lists and the port wait for the state file at most. Reading it takes half a second for 5,000 nodes."""


@dataclass(frozen=True, slots=True)
class NodeSource:
    """A source of the nodes and pods that are known now."""

    facts: Callable[[], NodeFacts]
    has_tried_lists: Callable[[], bool] = lambda: True
    """Whether the first lists are complete or have failed."""
    change: Callable[[SchedulingSettings], None] = lambda _: None
    """Follows a changed configuration."""


def node_source(
    objects: ObjectSettings | None,
    settings: SchedulingSettings,
    context: WorkerContext,
    telemetry: WatchTelemetry,
    pace: Pace,
    changed: Callable[[], None],
    begin: threading.Event,
) -> NodeSource:
    """Return the source of nodes and pods, and start its tasks. Raises UsageError.

    `changed` is called when a fact changes. The first lists begin once the event `begin` is set, or after
    `LONGEST_WAIT_SECONDS`, because tens of thousands of pods would delay more urgent work.
    """
    if objects is None:
        return NodeSource(NodeFacts)
    if objects.files is not None:
        return _folder(objects.files, settings, context, pace, changed)
    try:
        client = kubernetes_client(objects.cluster, limit=objects.limit)
    except KubernetesError as error:
        raise UsageError(f"{error}; or set --objects to a folder to run without a cluster") from error
    watch = ClusterWatch(
        client,
        needs_of(settings),
        lambda name, run: context.tasks.running(name, lambda stop: _after(begin, run, stop), reads_only=True),
        WatchSettings(pace=pace, telemetry=telemetry),
        changed=changed,
    )
    return NodeSource(
        facts=lambda: node_facts(watch.state(with_pods=False), watch.placed_pods()),
        has_tried_lists=watch.has_tried_lists,
        change=lambda settings: watch.change(needs_of(settings)),
    )


def _after(begin: threading.Event, run: Callable[[threading.Event], None], stop: threading.Event) -> None:
    begin.wait(LONGEST_WAIT_SECONDS)
    run(stop)


def _folder(
    directory: Path, settings: SchedulingSettings, context: WorkerContext, pace: Pace, changed: Callable[[], None]
) -> NodeSource:
    needs = needs_of(settings)
    folder = ClusterFolder(
        directory, pace, report=lambda problem: _log.error("%s", problem), changed=changed, needs=needs
    )
    try:
        folder.refresh()
    except ClusterFilesError as error:
        raise UsageError(str(error)) from error
    context.tasks.periodic("objects", folder.refresh, every_seconds=1.0, deadline_seconds=60.0, reads_only=True)
    return NodeSource(lambda: node_facts(folder.state(needs), folder.placed_pods()))
