"""Keeps readings up to date: starts what is due on threads of the process, and records how it ended.

Four kinds of work become due: refreshes of queries, look-ups of series for rule files and for objects, comparisons
of plans, and the sweep, which forgets what is no longer requested and logs which rules fail.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.service.runtime.threads import WorkWaitsError
from adapter.metrics.readings.asking.asking_state import AskingState
from adapter.metrics.readings.asking.query_scheduler import QueryScheduler
from adapter.metrics.readings.asking.query_upkeep import rule_troubles, sweep
from adapter.metrics.readings.catalogue.rule_health import RuleHealthLog, look_up_troubles, unreachable
from adapter.metrics.readings.errors import ReadingError
from adapter.metrics.readings.failure import Failure
from adapter.metrics.readings.refreshing.cross_check import CrossCheck
from adapter.metrics.readings.refreshing.refreshers import Refreshers
from adapter.metrics.readings.refreshing.shared_answers import SharedAnswers
from adapter.metrics.readings.rules_overview import by_backend, last_answer, rules_in_force
from adapter.metrics.readings.samples.shared_names import SharedNames

if TYPE_CHECKING:
    from collections.abc import Callable, Sized

    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.foundation.time.pace import Pace
    from adapter.metrics.readings.asking.effects import Trial
    from adapter.metrics.readings.asking.queries import Query, Reading
    from adapter.metrics.readings.catalogue.cataloguer import Cataloguer
    from adapter.metrics.readings.catalogue.object_cataloguer import ObjectCataloguer
    from adapter.metrics.readings.catalogue.series_look_ups import LookUpKey
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.readings.readings_telemetry import ReadingsTelemetry

_log = logging.getLogger(__name__)

_SWEEP_SECONDS = 5.0
_FREED_A_SLICE = 2000
_LACKS_MEMORY: Final = Failure(
    ReadingError, "there is too little memory to read the answer of Prometheus: raise the memory limit of the adapter"
)


class RefreshLoop:
    """Starts what is due. One thread calls `run_due`; any thread may call the others."""

    def __init__(
        self,
        sources: ReadingSources,
        cataloguer: Cataloguer,
        objects: ObjectCataloguer,
        telemetry: ReadingsTelemetry,
        states: RuleHealthLog,
    ) -> None:
        """Work for a Prometheus runs on its own threads; all other work runs on those of the flags' Prometheus."""
        asked = AskingState(
            settings=sources.settings,
            clock=sources.clock,
            telemetry=telemetry,
            states=states,
            launch=self._launch,
            launch_trial=self._launch_trial,
        )
        self.scheduler = QueryScheduler(asked)
        self._refreshers = Refreshers(sources, SharedNames(sources.clock.monotonic), telemetry, states)
        self._cross_check = CrossCheck(sources, self.scheduler, self._refreshers, telemetry)
        self._cataloguer = cataloguer
        self._objects = objects
        self._states = states
        self._backends = sources.backends
        self._threadless: set[Callable[[], None]] = set()
        """What starts the threads for work that waits for one. The client may be that of a former backend."""
        self._thread_log = StateLog(_log)
        self._pace = sources.pace
        self._clock = sources.clock
        self._shared = SharedAnswers(self._pace)
        self._swept_at = self._clock.monotonic()
        self._checking = False
        self._sweeping = False

    def run_due(self) -> float:
        """Start what is due, without waiting for it; return the seconds until something is due again, at most five."""
        now = self._clock.monotonic()
        for start in tuple(self._threadless):
            self._start_thread(start)
        self.scheduler.take_due()
        self._start_look_ups()
        if now - self._swept_at >= _SWEEP_SECONDS:
            self._swept_at = now
            if not self._sweeping:
                self._sweeping = True
                self._submit(None, self._sweep_once)
        if now >= self._cross_check.due and not self._checking:
            self._checking = True
            self._submit(None, self._check_a_plan)
        of_look_ups = self._cataloguer.next_due(), self._objects.next_due()
        due = (self.scheduler.next_due(), *of_look_ups, self._swept_at + _SWEEP_SECONDS)
        return max(0.0, min(moment for moment in due if moment is not None) - now)

    def refresh(self, query: Query) -> None:
        """Send a query to Prometheus once, and record how it ended."""
        outcome = self._ask(query)
        gone = self.scheduler.settle(query, outcome)
        # Nothing here may keep a reading alive, or it would be freed all at once.
        del outcome
        while gone:
            parts = gone.pop().pieces()
            let_go(parts, self._pace)

    def _ask(self, query: Query) -> Reading | Failure:
        try:
            outcome = self._refreshers.ask(query)
            return outcome if isinstance(outcome, Failure) else self._shared.share(query, outcome)
        except MemoryError:
            # A report takes memory, too, and until this returns, what was read of the answer is in memory. A query
            # whose end is not recorded is never sent again.
            return _LACKS_MEMORY
        except Exception as error:  # noqa: BLE001 - the one place that keeps a fault in one query from all others
            _log.exception("refreshing %s failed: internal error", query.metric.qualified)
            return Failure(
                ReadingError,
                f"{query.metric.qualified}: internal error ({type(error).__name__}), see the adapter's log",
            )

    def _launch(self, query: Query) -> None:
        self._submit(query.key.backend, partial(self.refresh, query))

    def _launch_trial(self, trial: Trial) -> None:
        self._submit(trial.wider.key.backend, partial(self._cross_check.try_wider, trial))

    def _submit(self, backend: Backend | None, work: Callable[[], None]) -> None:
        """Run the work on a thread for this backend, at once or when `run_due` can start one."""
        self._attempt(partial(self._backends.of(backend).submit, work))

    def _attempt(self, start: Callable[[], object]) -> None:
        try:
            start()
        except WorkWaitsError as error:
            # The work is kept (`DaemonThreads`). Raising here would lose what the caller has taken to submit next.
            self._threadless.add(error.start)
            self._thread_log.failed("", f"queries wait: {error}: raise the limit on the processes of the pod or node")

    def _start_thread(self, start: Callable[[], None]) -> None:
        """Start a thread for work that has none, if that is possible now."""
        self._threadless.discard(start)
        self._attempt(start)
        if not self._threadless:
            self._thread_log.recovered("", "threads can be started again")

    def _start_look_ups(self) -> None:
        for key in self._cataloguer.take_due():
            self._submit(key.backend, partial(self._look_up, key))
        for of_object in self._objects.take_due():
            self._submit(None, partial(self._look_up_object, of_object))

    def _look_up(self, key: LookUpKey) -> None:
        self._cataloguer.look_up(key)
        self._start_look_ups()

    def _look_up_object(self, key: tuple[str, str]) -> None:
        self._objects.look_up(key)
        self._start_look_ups()

    def _check_a_plan(self) -> None:
        try:
            self._cross_check.step()
        finally:
            self._checking = False

    def _sweep_once(self) -> None:
        try:
            self._sweep()
        finally:
            self._sweeping = False

    def _sweep(self) -> None:
        asked = self.scheduler.state
        sweep(asked, self._pace)
        self._backends.close_unused(asked.backends())
        states = self._cataloguer.states
        successes, failed = dict(asked.outcomes.last_success), asked.failed_sources
        resource = self._cataloguer.catalogue.resource
        backend_of = {rule.id: rule.backend for rule in rules_in_force(states, resource)}
        troubles = rule_troubles(asked, self._pace)
        for backend, of_backend in by_backend(states).items():
            # When Prometheus is down, no rule is at fault, so that is logged separately.
            own = {rule: at for rule, at in successes.items() if backend_of.get(rule) == backend}
            answered_at = last_answer(of_backend, own)
            if backend not in failed:
                self._states.report_source(unreachable(of_backend, answered_at), backend)
            troubles += look_up_troubles(of_backend)
        self._states.report(troubles, rules_in_force(states, resource), failed)


def let_go(parts: list[Sized], pace: Pace) -> None:
    """Free the parts of a reading in slices: 50,000 values at once would hold the interpreter for 3 ms.

    Requests that still read it keep what they need.
    """
    while parts:
        with pace.slice():
            freed = 0
            while parts and freed < _FREED_A_SLICE:
                freed += len(parts.pop())
