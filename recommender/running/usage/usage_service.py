"""The usage of a running recommender. Without recommendations that follow usage nothing of it is loaded."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import Unknown
from recommender.running.usage.usage_needs import usage_needs_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping
    from pathlib import Path

    from adapter.foundation.cluster.values.state import Observed
    from adapter.foundation.time.clock import Clock
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.record import TargetReference
    from recommender.running.queries.query_values import QueryValues
    from recommender.running.usage.usage_keeping import UsageKeeper
    from recommender.running.usage.usage_needs import UsageNeed

FOLDER: Final = "usage"
"""The folder of usage under that of the configuration's `state`."""
LONGEST_QUERY_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 5.0
_NOT_READ: Final = Unknown("its usage has not been read yet", is_awaited=True)


class UsageService:
    """The usage of all recommendations that follow it. `inputs` and `use` are for any number of threads."""

    def __init__(self, queries: QueryValues, state: Path, clock: Clock) -> None:
        """Begin without any; `queries` waits long enough for a day of usage, and is used by nobody else."""
        self._queries = queries
        self._state = state
        self._clock = clock
        self._needs: tuple[UsageNeed, ...] = ()
        self._keeper: UsageKeeper | None = None

    def use(self, configuration: Configuration) -> None:
        """Follow a configuration, at the start and when it has changed."""
        settings = configuration.prometheus
        # Queries name their own time limit; a server that calculates sends nothing meanwhile.
        patient = None if settings is None else replace(settings, read_timeout_seconds=LONGEST_QUERY_SECONDS)
        needs = usage_needs_of(configuration)
        self._queries.use(patient if needs else None)
        self._needs = needs

    def inputs(self) -> Mapping[str, Mapping[TargetReference, Observed[object] | Unknown] | Unknown]:
        """Return the newest usage of each recommendation."""
        unread = {need.name: _NOT_READ for need in self._needs}
        return unread if self._keeper is None else {**unread, **self._keeper.inputs()}

    def read_once(self) -> None:
        """Read all usage now."""
        for need in self._needs:
            self._reading().read(need)

    def keep(self, stop: threading.Event) -> None:
        """Read usage as it comes until the stop, and store it."""
        while not stop.is_set():
            needs = self._needs
            if needs or self._keeper is not None:
                keeper = self._reading()
                keeper.keep(needs)
                for need in needs:
                    if keeper.due(need):
                        keeper.read(need, partial(self._goes_on, needs, stop))
                keeper.save()
            stop.wait(_LOOK_SECONDS)
        if self._keeper is not None:
            self._keeper.save(is_last=True)

    def _goes_on(self, needs: tuple[UsageNeed, ...], stop: threading.Event) -> bool:
        return self._needs is needs and not stop.is_set()

    def _reading(self) -> UsageKeeper:
        # It loads numpy, which takes 20 MiB that other recommendations have no use for.
        from recommender.running.usage.usage_files import UsageFiles  # noqa: PLC0415
        from recommender.running.usage.usage_keeping import UsageKeeper  # noqa: PLC0415

        if self._keeper is None:
            self._keeper = UsageKeeper(self._queries.client, UsageFiles(self._state / FOLDER), self._clock.wall)
        return self._keeper
