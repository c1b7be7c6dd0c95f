"""The usage of a running recommender. The code is not loaded unless a recommendation follows usage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Observed, Unknown
from recommender.running.queries.backend_workers import BackendWorkers
from recommender.running.usage.usage_needs import UsageNeed, usage_needs_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping
    from pathlib import Path

    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from adapter.foundation.time.clock import Clock
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.record import TargetReference
    from recommender.running.queries.backend_queries import BackendConnection, BackendQueries
    from recommender.running.usage.usage_keeping import UsageKeeper

FOLDER: Final = "usage"
"""The folder of usage in the folder that the configuration calls `state`."""
LONGEST_QUERY_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 5.0
_NOT_READ: Final = Unknown("its usage has not been read yet", is_awaited=True)


@dataclass(slots=True)
class _Reader:
    """Reads usage from one backend, as soon as a recommendation follows usage there."""

    keeper: UsageKeeper | None = None


class UsageService:
    """The usage of all recommendations that follow usage. `inputs` and `use` are for any number of threads."""

    def __init__(self, queries: BackendQueries, state: Path, clock: Clock) -> None:
        """Begin without any usage; `queries` must not be used by other code, since its time limits are long."""
        self._queries = queries
        self._state = state
        self._clock = clock
        self._needs: tuple[UsageNeed, ...] = ()
        self._readers = BackendWorkers("usage", _Reader, self._keep)

    def use(self, configuration: Configuration, connections: Mapping[str, BackendConnection]) -> None:
        """Follow a configuration with its connections, at the start and when it has changed."""
        needs = usage_needs_of(configuration)
        backends = {need.backend for need in needs}
        # Queries name their own time limit; a server sends nothing while it calculates.
        patient = {
            backend: replace(each, settings=replace(each.settings, read_timeout_seconds=LONGEST_QUERY_SECONDS))
            for backend, each in connections.items()
            if each.settings is not None and backend in backends
        }
        self._queries.use(patient)
        if needs != self._needs:
            # Objects change all the time, and must not interrupt the reading of what is needed as before.
            self._needs = needs
        self._readers.keep(backends)
        for backend in backends:
            self._readers.of(backend)

    def inputs(self) -> Mapping[str, Mapping[TargetReference, Observed[object] | Unknown] | Unknown]:
        """Return the newest usage of each recommendation."""
        readers = self._readers.workers()
        found: dict[str, Mapping[TargetReference, Observed[object] | Unknown] | Unknown] = {}
        for need in self._needs:
            reader = readers.get(need.backend)
            known = {} if reader is None or reader.keeper is None else reader.keeper.inputs()
            found[need.name] = known.get(need.name, _NOT_READ)
        return found

    def read_once(self) -> None:
        """Read all usage now."""
        for need in self._needs:
            self._keeper_of(self._readers.of(need.backend)).read(need)

    def keep(self, stop: threading.Event) -> None:
        """Read and store usage as it arrives until `stop` is set; a backend that hangs does not delay the others."""
        self._readers.run(stop)

    def _keep(self, backend: str, reader: _Reader, stop: threading.Event) -> None:
        while not stop.is_set():
            wanted = self._needs
            needs = _needs_of(backend, wanted)
            if needs or reader.keeper is not None:
                keeper = self._keeper_of(reader)
                keeper.keep(needs, {need.name for need in wanted})
                for need in needs:
                    if keeper.due(need):
                        keeper.read(need, partial(self._is_still_wanted, wanted, stop))
                keeper.save()
            stop.wait(_LOOK_SECONDS)
        if reader.keeper is not None:
            # The work for a backend also ends when nothing needs it any more.
            wanted = self._needs
            reader.keeper.keep(_needs_of(backend, wanted), {need.name for need in wanted})
            reader.keeper.save(is_last=True)

    def _is_still_wanted(self, needs: tuple[UsageNeed, ...], stop: threading.Event) -> bool:
        return self._needs is needs and not stop.is_set()

    def _keeper_of(self, reader: _Reader) -> UsageKeeper:
        # These modules load numpy, which takes 20 MiB that other recommendations do not need.
        from recommender.running.usage.usage_files import UsageFiles  # noqa: PLC0415
        from recommender.running.usage.usage_keeping import UsageKeeper  # noqa: PLC0415

        if reader.keeper is None:
            files = UsageFiles(self._state / FOLDER)
            reader.keeper = UsageKeeper(self._client, files, self._clock.wall)
        return reader.keeper

    def _client(self, need: UsageNeed) -> PrometheusClient | None:
        return self._queries.of(need.backend, need.source).client()


def _needs_of(backend: str, needs: tuple[UsageNeed, ...]) -> tuple[UsageNeed, ...]:
    return tuple(need for need in needs if need.backend == backend)
