"""Checks of a Prometheus for `doctor` and `init`: whether it answers, its clock, and what its store holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.clocks import DOUBTFUL_SECONDS, clock_line, time_of
from adapter.foundation.reports.lines import CheckStatus, Line, error, ok, unknown, warning
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.deadlines import Deadline
from adapter.foundation.sources.prometheus.errors import PrometheusError, SettingsError, refuse_partial
from adapter.foundation.sources.prometheus.queries.budget import QUERY_SECONDS
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.sources.prometheus.queries.clusters import clusters_in
from adapter.foundation.sources.prometheus.queries.connection import check_connection
from adapter.foundation.sources.prometheus.queries.date_header import MOST_CLOCK_DIFFERENCE_SECONDS
from adapter.foundation.sources.prometheus.queries.server_time import TIME_QUERY, stated_time
from adapter.foundation.sources.prometheus.transport.requests import ApiRequest
from adapter.foundation.sources.prometheus.transport.server import Server
from adapter.foundation.time.pace import UNPACED

if TYPE_CHECKING:
    from adapter.foundation.options.found_prometheus import FoundPrometheus
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

BACKEND_SECONDS: Final = 5.0
_CLOCK: Final = "clock/prometheus"
"""Name of the line about the clock of the only Prometheus."""
_LINE: Final = "prometheus"
"""Name of the line about the only Prometheus."""
_MOST_SHOWN: Final = 4
_AHEAD_SECONDS: Final = 24 * 3600
_FUTURE_QUERY: Final = f"count(count_over_time(up[{_AHEAD_SECONDS - MOST_CLOCK_DIFFERENCE_SECONDS:.0f}s]))"


def look_at_backend(name: str, settings: PrometheusSettings, whom: str) -> tuple[Line, ...]:
    """Check whether one of several Prometheus servers answers, its clock, and what its store holds.

    `whom` says what selects the server: `entries` or `rules`.
    """
    line = f"{_LINE}/{name}"
    fix = f"correct the backend {name} in `prometheus`; only the {whom} that use it are affected"
    return _look_at(settings, line, f"{line}/clock", fix)


def look_at_only_backend(settings: PrometheusSettings) -> tuple[Line, ...]:
    """Check whether the only Prometheus server of a configuration answers, its clock, and what its store holds."""
    return _look_at(settings, _LINE, _CLOCK, "correct `prometheus`: its address, CA and credentials")


def _look_at(settings: PrometheusSettings, line: str, clock: str, fix: str) -> tuple[Line, ...]:
    """Return the lines about a server; one that does not answer gets a single line, with `fix` if it names none."""
    try:
        version = check_connection(settings, BACKEND_SECONDS)
    except (PrometheusError, SettingsError) as e:
        repair = e.repair if isinstance(e, PrometheusError) else ""
        return (error(line, f"{settings.endpoint.shown} does not answer: {e}", repair or fix),)
    return (
        ok(line, f"{settings.endpoint.shown} answers queries (version {version})"),
        *look_at_store(settings, line, clock),
    )


def look_at_store(
    settings: PrometheusSettings, line: str = _LINE, clock: str = _CLOCK, setting: str = "prometheus.matchers"
) -> tuple[Line, ...]:
    """Return the lines about a server's clock, and about samples from the future and several clusters in its store.

    `setting` is the flag or key that sets matchers.
    """
    return (
        _look_at_clock(settings, clock),
        _look_at_future(settings, f"{line}/future"),
        _look_at_clusters(settings, f"{line}/clusters", setting),
    )


def refuse_several_clusters(found: FoundPrometheus) -> None:
    """Raise UsageError if the store has series of several clusters and no matchers select one.

    Raises PrometheusError and SettingsError, too.
    """
    if found.settings.matchers is not None:
        return
    clusters = clusters_in(found.settings, QUERY_SECONDS)
    if clusters:
        line = judge_clusters(clusters, "", "--prometheus-matchers")
        raise UsageError(f"{found.url}: {line.message}: {line.fix}")


def _look_at_clock(settings: PrometheusSettings, name: str) -> Line:
    ages: list[float] = []
    try:
        server = Server(settings)
        try:
            found = clock_line("Prometheus", lambda: _time_of(server, ages.append), MOST_CLOCK_DIFFERENCE_SECONDS)
        finally:
            server.close()
    except (PrometheusError, SettingsError) as e:
        return unknown(name, f"its clock is not known: {e}", "try again")
    if found.status is CheckStatus.OK and (age := max(ages, default=0.0)) > DOUBTFUL_SECONDS:
        found = _judge_age(age)
    return replace(found, name=name)


def _judge_age(seconds: float) -> Line:
    """Return the line about a server that answers with values of so many seconds ago."""
    message = (
        f"Prometheus's clock and this machine's agree, but it answers with values of {seconds:.0f} s ago as if they"
        " were present, as VictoriaMetrics does (-search.latencyOffset)"
    )
    return warning(
        _CLOCK, message, "add the parameter latency_offset=1ms to its URL: http://HOST:8428/?latency_offset=1ms"
    )


def _time_of(server: Server, note_age: Callable[[float], None]) -> float | None:
    """Return the time that the server states; otherwise that of the header `Date`, which may be a gateway's.

    `note_age` is called with the seconds by which values are older than the time that the server states for them.
    """
    request = ApiRequest("/api/v1/query", (("query", TIME_QUERY),))
    answer = server.exchange(TIME_QUERY, request, Deadline(BACKEND_SECONDS))
    try:
        stated = stated_time(server.success(TIME_QUERY, answer).body)
    except PrometheusError:
        return time_of(answer.headers.get("date", ""))
    note_age(stated.present - stated.evaluated)
    return stated.present


def _look_at_future(settings: PrometheusSettings, name: str) -> Line:
    try:
        return _judge_future(name, targets_of_the_future(settings))
    except (PrometheusError, SettingsError) as e:
        return unknown(
            name, f"it is not known whether the store holds samples with future timestamps: {e}", "try again"
        )


def _look_at_clusters(settings: PrometheusSettings, name: str, setting: str) -> Line:
    try:
        return judge_clusters(clusters_in(settings, BACKEND_SECONDS), str(settings.matchers or ""), setting, name)
    except (PrometheusError, SettingsError) as e:
        return unknown(name, f"it is not known whether the store holds several clusters: {e}", "try again")


def judge_clusters(found: Mapping[str, Sequence[str]], matchers: str, setting: str, name: str = "") -> Line:
    """Return the line about the clusters of a store.

    `found` has the values of each label that names clusters and has several values. `matchers` are the matchers in use;
    `setting` is the flag or key that sets them.
    """
    if matchers:
        return ok(name, f"only series with {matchers} are read")
    if not found:
        return ok(name, "no label shows that it holds series of several clusters")
    label, values = next(iter(found.items()))
    shown = ", ".join(value or "none" for value in values[:_MOST_SHOWN]) + (", …" if len(values) > _MOST_SHOWN else "")
    example = next(value for value in values if value)
    message = f"it holds the series of several clusters ({label}: {shown}), which would be added up and mixed"
    return warning(name, message, f"""set {setting} '{label}="{example}"', with the name of this cluster""")


def targets_of_the_future(settings: PrometheusSettings) -> int:
    """Return how many targets have samples that are more than a minute, and at most a day, later than now.

    Only a Prometheus whose clock is ahead writes such samples. Few are read, since a store usually has none. Raises
    PrometheusError, also for a partial answer without any, and SettingsError.
    """
    with PrometheusClient(settings) as client:
        answer = client.instant(_FUTURE_QUERY, timeout_seconds=BACKEND_SECONDS, at=time.time() + _AHEAD_SECONDS)
        targets = sum(int(sample.value) for batch in answer.batches(UNPACED) for sample in batch)
    if not targets:
        refuse_partial(_FUTURE_QUERY, answer.warnings)
    return targets


def _judge_future(name: str, targets: int) -> Line:
    """Return the line about samples with timestamps in the future; `targets` is the number of targets that have any."""
    if not targets:
        return ok(name, "it holds no samples with future timestamps")
    message = (
        f"it holds samples with future timestamps (targets: {targets}), so the clock of a Prometheus that writes "
        "to it is or was ahead: when their time comes, they are taken for current"
    )
    return warning(name, message, "synchronize the clocks of all that write to it with NTP, and delete these samples")
