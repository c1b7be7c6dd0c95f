"""Reads the past for a replay: a recording of `run`, or the series of kube-state-metrics."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.prometheus.errors import PrometheusError, SettingsError, with_repair
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from recommender.backtest.recorded.command_line_times import parse_moment
from recommender.commands.chosen_backend import chosen_prometheus
from recommender.commands.replay.kube_history import recording_of
from recommender.commands.replay.kube_state import PastWindow, read_kube_state
from recommender.recording.reading import read_recording
from recommender.running.usage.prometheus_vectors import QUERY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.recording.recording import Recording


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
        end = _end(values, now) if "end" in values.given else None
        return read_recording(path, values.seconds("last") if "last" in values.given else None, end, now=now)
    step = values.seconds("step")
    if step < 1 or step != int(step):
        raise UsageError(f"--step of {step:g} s: Prometheus is queried in whole seconds, 1 s or more")
    given = _end(values, now)
    if given > now:
        raise UsageError(f"--end: {values.text('end')} is in the future: write a time that is past")
    end = math.floor(given / step) * step
    start = end - math.floor(values.seconds("last") / step) * step
    if not 0 <= start < end:
        raise UsageError("--last must be longer than --step and begin after 1970: write a duration such as 14d")
    # Queries name their own time limit; a server sends nothing while it calculates.
    connection = replace(
        _prometheus(values, chosen_prometheus(configuration, settings)), read_timeout_seconds=QUERY_SECONDS
    )
    try:
        with PrometheusClient(connection) as client:
            state = read_kube_state(client, PastWindow(start, end, int(step)), show)
    except PrometheusError as error:
        raise UsageError(with_repair(error, "check the credentials under `prometheus` in --config")) from error
    return recording_of(state, connection.endpoint.shown, set(_label_keys(settings)))


def _end(values: FlagValues, now: float) -> float:
    try:
        return parse_moment(values.text("end"), now) if "end" in values.given else now
    except ValueError as error:
        raise UsageError(f"--end: {error}") from error


def _label_keys(settings: ClusterSizeSettings) -> Iterator[str]:
    """Yield the keys of the labels by which the configuration distinguishes node groups."""
    for group in settings.node_groups.static:
        yield from group.selector.keys
        yield from group.labels
    if settings.node_groups.by_label is not None:
        yield settings.node_groups.by_label.key


def _prometheus(values: FlagValues, known: PrometheusSettings | None) -> PrometheusSettings:
    """Return the connection; configured credentials are used only for the configured address, and matchers for all."""
    url = values.text("prometheus-url") if "prometheus-url" in values.given else ""
    if known is not None and url in {"", known.url}:
        return known
    if not url:
        raise UsageError(
            "no past is named: write --prometheus-url, such as http://prometheus:9090, or --recording FILE"
        )
    try:
        return PrometheusSettings(url, matchers=None if known is None else known.matchers)
    except SettingsError as error:
        raise UsageError(f"--prometheus-url: {error}") from error
