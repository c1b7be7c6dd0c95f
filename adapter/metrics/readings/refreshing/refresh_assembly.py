"""The scheduler of queries and the loop that refreshes them, put together: each calls the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.metrics.readings.asking.asking_state import AskingState
from adapter.metrics.readings.asking.query_scheduler import QueryScheduler
from adapter.metrics.readings.refreshing.cross_check import CrossCheck
from adapter.metrics.readings.refreshing.refresh_loop import RefreshLoop
from adapter.metrics.readings.refreshing.refreshers import Refreshers
from adapter.metrics.readings.samples.shared_names import SharedNames

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.metrics.readings.asking.queries import Query
    from adapter.metrics.readings.catalogue.cataloguer import Cataloguer
    from adapter.metrics.readings.catalogue.object_cataloguer import ObjectCataloguer
    from adapter.metrics.readings.catalogue.rule_health import RuleHealthLog
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.readings.readings_telemetry import ReadingsTelemetry


def new_refresh_loop(
    sources: ReadingSources,
    cataloguer: Cataloguer,
    objects: ObjectCataloguer,
    telemetry: ReadingsTelemetry,
    states: RuleHealthLog,
) -> RefreshLoop:
    """Return a loop without demand; each query runs on a thread for the Prometheus that it is sent to."""

    def submit(query: Query, work: Callable[[], None]) -> None:
        sources.backends.of(query.key.backend).submit(work)

    scheduler = QueryScheduler(
        AskingState(
            settings=sources.settings,
            clock=sources.clock,
            telemetry=telemetry,
            states=states,
            launch=lambda query: submit(query, lambda: loop.refresh(query)),
            launch_trial=lambda trial: submit(trial.wider, lambda: loop.try_wider(trial)),
        )
    )
    refreshers = Refreshers(sources, SharedNames(sources.clock.monotonic), telemetry, states)
    loop = RefreshLoop(
        sources,
        scheduler=scheduler,
        refresher=refreshers,
        cataloguer=cataloguer,
        objects=objects,
        cross_check=CrossCheck(sources, scheduler, refreshers, telemetry),
        states=states,
    )
    return loop
