"""Starts the tasks that follow objects of the kind Recommendation and write their statuses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from adapter.foundation.cluster.watch.whole_objects.absent import fetch_absent, list_one
from adapter.foundation.cluster.watch.whole_objects.watching import AnyObjectForm
from recommender.configuration.objects.admission import most_read
from recommender.configuration.objects.object_settings import collection_path
from recommender.running.objects.object_watch import known_objects, object_watch
from recommender.running.objects.status_writer import StatusWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.service.runtime.tasks import Tasks
    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.kubernetes.lists.list_watch import WatchSettings
    from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
    from recommender.decisions.publication import Publication
    from recommender.running.objects.object_configuration import ObjectConfigurations


@dataclass(frozen=True, slots=True)
class StatusAccess:
    """The client and the fence with which a process writes statuses."""

    objects: ObjectClient
    fence: Fence


@dataclass(frozen=True, slots=True)
class FollowedObjects:
    """A worker's tasks for objects of the kind Recommendation."""

    publish: Callable[[Publication], None]
    """Accepts publications, from which statuses are written."""
    start: Callable[[], None]
    """Starts the tasks; to be called when everything is ready for changes."""


def without_objects(_source: ObjectConfigurations | None = None) -> FollowedObjects:
    """Return an empty set of tasks, for a process that follows no objects or has no cluster."""
    return FollowedObjects(lambda _publication: None, lambda: None)


def follow_objects(
    client: KubernetesClient,
    tasks: Tasks,
    watches: WatchSettings,
    status: StatusAccess | None,
    source: ObjectConfigurations,
) -> FollowedObjects:
    """Return the tasks that follow objects and write their statuses; without `status`, no status is written."""
    watch, store = object_watch(client, watches, most_read(source.current.objects), source.note_change)
    known = partial(known_objects, watch, store)
    source.connect(known, store.limit)
    fetch = partial(fetch_absent, partial(list_one, client, collection_path), AnyObjectForm, store)
    writer = None
    if status is not None:
        writer = StatusWriter(status.objects, status.fence, lambda: source.admission, known, store)
        source.on_admission(writer.reconfigured)

    def start() -> None:
        tasks.running("watch recommendations", watch.run, reads_only=True)
        tasks.running("recommendations within quotas", fetch, reads_only=True)
        tasks.running("recommendation objects", source.run)
        if writer is not None:
            tasks.running("statuses of objects", writer.run)

    return FollowedObjects((lambda _publication: None) if writer is None else writer.publish, start)
