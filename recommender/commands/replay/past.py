"""Reads the past for a replay (a recording of `run`, or series of kube-state-metrics), and the entry to replay."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.prometheus.errors import PrometheusError, with_repair
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from recommender.commands.chosen_backend import chosen_prometheus
from recommender.commands.chosen_recommendation import chosen
from recommender.commands.past_span import moment_of, whole_step
from recommender.commands.replay.kube_history import recording_of
from recommender.commands.replay.kube_state import PastWindow, read_kube_state
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings, cluster_size_settings
from recommender.recording.reading import read_recording
from recommender.running.usage.prometheus_vectors import QUERY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.recording.recording import Recording


_UNNAMED: Final = "no history is given: write --prometheus-url, such as http://prometheus:9090, or --recording FILE"


def read_past(
    values: FlagValues,
    configuration: Configuration,
    settings: ClusterSizeSettings,
    show: Callable[[float, str], None],
) -> Recording:
    """Return the past that the flags name. Raises UsageError, RecordingError and SettingsError."""
    path, now = values.path("recording"), time.time()
    if path is not None:
        if "prometheus-url" in values.given:
            raise UsageError("--recording and --prometheus-url cannot be combined: the past comes from one of them")
        end = moment_of(values, "end", now) if "end" in values.given else None
        return read_recording(path, values.seconds("last") if "last" in values.given else None, end, now=now)
    step = whole_step(values.seconds("step"))
    given = moment_of(values, "end", now) if "end" in values.given else now
    if given > now:
        raise UsageError(f"--end: {values.text('end')} is in the future: write a time that is past")
    end = math.floor(given / step) * step
    start = end - math.floor(values.seconds("last") / step) * step
    if not 0 <= start < end:
        raise UsageError("--last must be longer than --step and begin after 1970: write a duration such as 14d")
    # Queries name their own time limit; a server sends nothing while it calculates.
    connection = replace(
        chosen_prometheus(values, configuration, settings, _UNNAMED), read_timeout_seconds=QUERY_SECONDS
    )
    try:
        with PrometheusClient(connection) as client:
            state = read_kube_state(client, PastWindow(start, end, int(step)), show)
    except PrometheusError as error:
        raise UsageError(with_repair(error, "check the credentials under `prometheus` in --config")) from error
    return recording_of(state, connection.endpoint.shown, set(_label_keys(settings)))


def _label_keys(settings: ClusterSizeSettings) -> Iterator[str]:
    """Yield the keys of the labels by which the configuration distinguishes node groups."""
    for group in settings.node_groups.static:
        yield from group.selector.keys
        yield from group.labels
    if settings.node_groups.by_label is not None:
        yield settings.node_groups.by_label.key


def chosen_settings(name: str, configuration: Configuration) -> ClusterSizeSettings:
    """Return the settings of the named cluster size or, without a name, those of the only one. Raises UsageError."""
    found = cluster_size_settings(configuration.recommendations)
    return chosen(name, "clusterSize", found, configuration.refused, "node groups")
