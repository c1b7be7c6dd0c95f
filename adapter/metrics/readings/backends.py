"""The Prometheus servers that rules query: that of the flags, and the backends that rules name.

Each has its own connections, threads, limits and record of its uptime. So a server that is down or slow, or that
refuses the credentials, delays only its own rules.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Protocol

from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError
from adapter.foundation.sources.prometheus.queries.budget import Prometheus
from adapter.foundation.time.clock import Clock
from adapter.metrics.readings.prometheus_uptime import PrometheusUptime
from adapter.metrics.rulebook.model import Rulebook, all_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import TypeAlias

    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from adapter.foundation.sources.prometheus.queries.runtime import Started

Submit: TypeAlias = "Callable[[Callable[[], None]], object]"


class ConnectedBackend(Prometheus, Protocol):
    """A client of one backend, with threads of its own."""

    def fetch_start(self, seconds: float, /) -> Started:
        """Ask the server when it started, within some seconds. Raises PrometheusError."""

    def submit(self, work: Callable[[], None]) -> None:
        """Run the work on a thread that works only for this backend."""

    def close(self) -> None:
        """End its threads and close its connections."""


Connect: TypeAlias = "Callable[[Backend], ConnectedBackend]"
"""Returns a client of a backend, which connects with the first query."""


@dataclass(frozen=True, slots=True)
class Source:
    """One Prometheus: the client for it, and its uptime."""

    prometheus: Prometheus
    uptime: PrometheusUptime
    submit: Submit


@dataclass(frozen=True, slots=True)
class _Used:
    settings: PrometheusSettings
    connected: ConnectedBackend
    source: Source


class Backends:
    """The Prometheus servers of the rules in force. Thread-safe."""

    def __init__(self, default: Source, connect: Connect | None = None, clock: Clock | None = None) -> None:
        """`default` is the Prometheus of the flags. Without `connect` there is no other, as for MetricRule objects."""
        self._default = default
        self._connect = connect
        self._clock = clock or Clock()
        self._lock = threading.Lock()
        self._used: Mapping[Backend, _Used] = {}
        self._wanted: Collection[Backend] = ()
        """The backends of the rules that are in force, or will be in a moment."""

    def of(self, backend: Backend | None) -> Source:
        """Return the source for a backend; if no rule names the backend any more, the source fails each query."""
        if backend is None:
            return self._default
        used = self._used.get(backend)
        if used is not None:
            return used.source
        gone = _Gone("no rule names it any more: name it in a rule, or ask another")
        return Source(gone, PrometheusUptime(self._clock), self._default.submit)

    def number(self) -> int:
        """Return the number of Prometheus servers in use, including that of the flags."""
        return 1 + len(self._used)

    def open(self, rulebook: Rulebook) -> None:
        """Connect to the backends of rules that will be in force, in addition to those in use."""
        wanted = _backends_of(rulebook)
        with self._lock:
            self._wanted = wanted.keys()
            used, replaced = dict(self._used), list[_Used]()
            for backend, has_no_data_value in wanted.items():
                known = used.get(backend)
                if known is None or known.settings != backend.settings:
                    replaced += () if known is None else (known,)
                    known = self._connect_backend(backend)
                known.source.uptime.wanted |= has_no_data_value
                used[backend] = known
            self._used = used
        _close(replaced)

    def close_unused(self, asked: Collection[Backend | None]) -> None:
        """Close the connections to backends that neither a rule nor a query uses any more."""
        with self._lock:
            kept = {backend: used for backend, used in self._used.items() if backend in (*self._wanted, *asked)}
            gone = [used for backend, used in self._used.items() if backend not in kept]
            self._used = kept
        _close(gone)

    def _connect_backend(self, backend: Backend) -> _Used:
        if self._connect is None:
            raise AssertionError("only rules of files have backends")
        connected = self._connect(backend)
        source = Source(connected, PrometheusUptime(self._clock, connected.fetch_start), connected.submit)
        return _Used(backend.settings, connected, source)


@dataclass(frozen=True, slots=True)
class _Gone:
    """Stands in for a Prometheus that must not be queried any more."""

    reason: str

    def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> NoReturn:  # noqa: ARG002 - of the protocol
        raise PrometheusUnreachableError(query, self.reason)

    def series(self, selector: str, *, start: float, timeout_seconds: float) -> NoReturn:  # noqa: ARG002 - likewise
        raise PrometheusUnreachableError(selector, self.reason)


def only(prometheus: Prometheus, uptime: PrometheusUptime) -> Backends:
    """Return only the Prometheus of the flags, for code that queries on threads of its own."""
    return Backends(Source(prometheus, uptime, lambda work: work()))


def _backends_of(rulebook: Rulebook) -> dict[Backend, bool]:
    """Return the backends that rules name, each with whether any of its rules has a value for no data."""
    # A retained rule has the former credentials.
    present = {backend: backend for backend in rulebook.backends}
    found: dict[Backend, bool] = {}
    for rule in all_rules(rulebook):
        if rule.backend is not None:
            backend = present.get(rule.backend, rule.backend)
            found[backend] = found.get(backend, False) or rule.policy.no_data_value is not None
    return found


def _close(gone: Iterable[_Used]) -> None:
    for used in gone:
        used.connected.close()
