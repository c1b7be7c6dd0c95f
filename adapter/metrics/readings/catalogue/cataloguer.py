"""Maintains the catalogue: looks up each rule's series when due, and replaces the catalogue if metrics have changed."""

from __future__ import annotations

import logging
import queue
import threading
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from adapter.foundation.service.runtime.threads import DaemonThreads
from adapter.foundation.time.due_queue import DueQueue
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.readings.catalogue.metric_discovery import SeriesDiscovery
from adapter.metrics.readings.catalogue.series_look_ups import (
    LookUpKey,
    LookUpResult,
    SeriesLookUps,
    internal_error_result,
    look_up_key,
)
from adapter.metrics.readings.retries import retry_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.foundation.time.clock import Clock
    from adapter.metrics.readings.catalogue.discovered_rule import DiscoveredRule
    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.rulebook.model import Rulebook

_log = logging.getLogger(__name__)

_REPORT_SECONDS = 0.5
"""How long a reload waits beyond its own limit for look-ups to report that their deadline has passed."""


class Cataloguer:
    """The rulebook in force and the catalogue made from it.

    Any thread may call it. `next_due` and `take_due` never wait. Look-ups run side by side, and their results are
    entered one after the other, in slices that let requests run.
    """

    def __init__(self, sources: ReadingSources, rulebook: Rulebook) -> None:
        self._look_ups = SeriesLookUps(sources)
        self._discovery = SeriesDiscovery(sources)
        self._settings = sources.settings
        self._clock = sources.clock
        self._lock = threading.Lock()
        """Lock for the schedule, which is never held for long."""
        self._entering = threading.Lock()
        """Lock for the states of the rules and the catalogue."""
        self._schedule: dict[Backend | None, DueQueue[LookUpKey]] = {}
        self._failures: dict[LookUpKey, int] = {}
        self._running: Counter[Backend | None] = Counter()
        self._complete = threading.Event()
        """Set while the catalogue contains the results of the look-ups of all rules."""
        self.catalogue = Catalogue()
        """The catalogue that is served now."""
        self.rulebook = rulebook
        """The rules of the catalogue."""
        self.states: tuple[DiscoveredRule, ...] = ()
        """The state of each rule, in the order of the files; replaced as a whole."""
        self._adopt(rulebook)

    def replace(self, rulebook: Rulebook) -> None:
        """Put another rulebook in force.

        Series of new rules are looked up before that, for as long as the settings allow, so that a changed rule
        does not take its metrics from the API until the next look-up.
        """
        states = self._discovery.carry_over(rulebook, self.states)
        missing = _by_backend(_look_up_keys(state for state in states if not state.looked_up))
        self._adopt(rulebook, self._looked_up_at_once(missing, states))

    def _looked_up_at_once(
        self, missing: Mapping[Backend | None, list[LookUpKey]], states: tuple[DiscoveredRule, ...]
    ) -> list[LookUpResult]:
        """Return what was found in time; all backends are queried at the same time.

        The first is queried on the calling thread, each other one on a thread of its own.
        """
        until = self._clock.monotonic() + self._settings.reload_discovery_seconds
        found: queue.SimpleQueue[LookUpResult | None] = queue.SimpleQueue()

        def look_up(keys: list[LookUpKey]) -> None:
            try:
                for key in keys:
                    left = until - self._clock.monotonic()
                    if left <= 0:
                        break
                    found.put(self._result_of(key, states, left))
            finally:
                found.put(None)

        own, *others = missing.values() or ([],)
        threads = DaemonThreads("look-up of a reload", len(others))
        for keys in others:
            threads.submit(partial(look_up, keys))
        threads.close()
        look_up(own)
        return list(_until_all_ended(found, 1 + len(others), until + _REPORT_SECONDS, self._clock))

    def take_due(self) -> list[LookUpKey]:
        """Return the keys to look up now with `look_up`, as many as each Prometheus may be asked for at once."""
        with self._lock:
            now, taken = self._clock.monotonic(), list[LookUpKey]()
            for backend, schedule in self._schedule.items():
                due = schedule.pop_due(now, self._free(backend))
                self._running[backend] += len(due)
                taken += due
            return taken

    def next_due(self) -> float | None:
        """Return when the next look-up is due, in monotonic seconds; None if none is due or no more may run at once."""
        with self._lock:
            due = (schedule.next_due() for backend, schedule in self._schedule.items() if self._free(backend))
            return min((moment for moment in due if moment is not None), default=None)

    def look_up(self, key: LookUpKey) -> None:
        """Look up the series of all rules with that key, and swap the catalogue if that changed it."""
        started = self._clock.monotonic()
        result = internal_error_result(key)
        try:
            deadline = self._settings.discovery_deadline_seconds
            new = self._result_of(key, self.states, deadline)
            with self._entering:
                self._enter(new)
            result = new
        finally:
            with self._lock:
                self._running[key.backend] -= 1
                schedule = self._schedule.setdefault(key.backend, DueQueue())
                # Whatever fails below, such as for lack of memory: nothing else would look the key up again.
                schedule.set(key, started + self._settings.relist_interval_seconds)
                if key in _look_up_keys(self.states):
                    schedule.set(key, self._next(result, started))
                else:
                    schedule.discard(key)
                    self._failures.pop(key, None)

    def has_looked_up_all(self) -> bool:
        """Return whether the series of every rule have been looked up once, with or without success.

        The catalogue then holds what was found.
        """
        return self._complete.is_set()

    def await_all(self, seconds: float) -> bool:
        """Wait until the series of every rule have been looked up once; return whether they have been."""
        return self._complete.wait(seconds)

    def _free(self, backend: Backend | None) -> int:
        return self._settings.max_concurrent_look_ups - self._running[backend]

    def _result_of(self, key: LookUpKey, states: Iterable[DiscoveredRule], timeout_seconds: float) -> LookUpResult:
        asking = [state for state in states if look_up_key(state.rule) == key]
        try:
            return self._look_ups.look_up(key, asking, timeout_seconds)
        except Exception as error:  # noqa: BLE001 - see below
            # The one place where a fault in one rule's look-up is kept from all others.
            _log.exception("looking up %s failed: internal error", key.series_query)
            return internal_error_result(key, error)

    def _next(self, result: LookUpResult, started: float) -> float:
        interval, now = self._settings.relist_interval_seconds, self._clock.monotonic()
        if result.failure is None and not self._looked_up(result.key, self.states):
            # A reload in between has added another rule with this query.
            return started
        if not result.unreachable:
            self._failures.pop(result.key, None)
            # Prometheus is not asked all the time: the pause between two look-ups is at least as long as the first one
            # took.
            return max(started + interval, now + (now - started))
        failures = self._failures[result.key] = self._failures.get(result.key, 0) + 1
        return now + retry_after(failures, interval)

    def _adopt(self, rulebook: Rulebook, results: Iterable[LookUpResult] = ()) -> None:
        with self._entering:
            # This cannot be done earlier: other look-ups were entered while these metrics were made.
            states = self._discovery.carry_over(rulebook, self.states)
            for result in results:
                states, _ = self._discovery.update_rules(result, states)
            self._serve(states, self._catalogue_of(states, rulebook), rulebook)
            with self._lock:
                self._schedule = self._schedule_look_ups(states)
                # A rule that comes back later is new.
                known = frozenset(_look_up_keys(states))
                self._failures = {key: times for key, times in self._failures.items() if key in known}

    def _schedule_look_ups(self, states: tuple[DiscoveredRule, ...]) -> dict[Backend | None, DueQueue[LookUpKey]]:
        now = self._clock.monotonic()
        schedule: dict[Backend | None, DueQueue[LookUpKey]] = {}
        for backend, keys in _by_backend(_look_up_keys(states)).items():
            due = schedule[backend] = DueQueue()
            for key in keys:
                known = self._looked_up(key, states)
                due.set(key, now + self._settings.relist_interval_seconds if known else now)
        return schedule

    @staticmethod
    def _looked_up(key: LookUpKey, states: Iterable[DiscoveredRule]) -> bool:
        return all(state.looked_up for state in states if look_up_key(state.rule) == key)

    def _enter(self, result: LookUpResult) -> None:
        states, changed = self._discovery.update_rules(result, self.states)
        catalogue = self._catalogue_of(states, self.rulebook) if changed else self.catalogue
        self._serve(states, catalogue, self.rulebook)

    def _serve(self, states: tuple[DiscoveredRule, ...], catalogue: Catalogue, rulebook: Rulebook) -> None:
        """Put another catalogue in force, and only then mark its rules as looked up.

        In the opposite order a process would be ready, and its rules would be in order, while it answers that their
        metrics do not exist.
        """
        self.rulebook = rulebook
        self.catalogue = catalogue
        self.states = states
        if all(state.looked_up or state.failure or not state.rule.series_query for state in states):
            self._complete.set()
        else:
            self._complete.clear()

    def _catalogue_of(self, states: tuple[DiscoveredRule, ...], rulebook: Rulebook) -> Catalogue:
        metrics = self._discovery.metrics(states, rulebook.retained)
        return Catalogue(metrics, self.catalogue.generation + 1, self._discovery.pace, rulebook.resource)


def _look_up_keys(states: Iterable[DiscoveredRule]) -> list[LookUpKey]:
    return list(dict.fromkeys(look_up_key(state.rule) for state in states if state.rule.series_query))


def _by_backend(keys: Iterable[LookUpKey]) -> dict[Backend | None, list[LookUpKey]]:
    found: dict[Backend | None, list[LookUpKey]] = {}
    for key in keys:
        found.setdefault(key.backend, []).append(key)
    return found


def _until_all_ended(
    found: queue.SimpleQueue[LookUpResult | None], running: int, until: float, clock: Clock
) -> Iterator[LookUpResult]:
    """Yield results until `running` look-ups have ended, each marked by None, or until a time in monotonic seconds."""
    while running:
        try:
            result = found.get(timeout=max(0.0, until - clock.monotonic()))
        except queue.Empty:
            return
        if result is None:
            running -= 1
        else:
            yield result
