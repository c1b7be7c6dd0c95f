"""Maintains the metrics of MetricRule objects: looks up their series, beside the look-ups for rule files.

Namespaces take turns. Each has at most one look-up under way, and each look-up is followed by a pause of four times its
duration, so one namespace never delays the rules of others for long.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.time.due_queue import DueQueue
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.readings.catalogue.metric_discovery import SeriesDiscovery
from adapter.metrics.readings.catalogue.object_catalogues import (
    MOST_SERIES_METRICS,
    NamespaceObjects,
    ObjectState,
    namespace_objects,
    oldest_names,
)
from adapter.metrics.readings.catalogue.series_look_ups import (
    LookUpKey,
    LookUpResult,
    SeriesLookUps,
    internal_error_result,
    look_up_key,
)
from adapter.metrics.readings.retries import retry_after
from adapter.metrics.rulebook.provided_metrics import SeriesShapes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from adapter.metrics.readings.reading_sources import ReadingSources
    from adapter.metrics.rulebook.model import Rule
    from adapter.metrics.rulebook.objects.rule_object import RuleObject

_log = logging.getLogger(__name__)

_NOTHING = Catalogue()
MOST_NAMES = 500
MOST_LABELS = 200
MOST_BYTES = 1 << 20
"""Limits on the series of one object's look-up: their names, the labels of a name, and the memory for both."""
LONGEST_NAME = 1000
"""Longest name of a series in characters: the time that a pattern takes grows with it."""
_PAUSE_RATIO = 4.0
"""Pause of a namespace after a look-up, in proportion to the duration of the look-up."""
_LOOK_UPS_A_SECOND = 20.0
"""Look-ups per second; with more objects than that allows in a relist interval, the interval grows: 2,000 objects are
looked up every 100 s."""

_Key = tuple[str, str]
"""Namespace and name of an object."""


class ObjectCataloguer:
    """The objects in force, and the catalogue of each namespace. Any thread may call it."""

    def __init__(self, sources: ReadingSources) -> None:
        """Start without objects; `sources` must contain only the Prometheus that owners of objects may query.

        They should not share the process's record of Prometheus's uptime: an owner's selector that is too slow says
        nothing about Prometheus.
        """
        seconds = sources.settings.object_look_up_deadline_seconds
        self._look_ups = SeriesLookUps(
            sources, _shapes_of_owner, most_naming_seconds=seconds, most_metrics=MOST_SERIES_METRICS
        )
        most_kept = min(sources.settings.max_kept_metrics, MOST_SERIES_METRICS)
        self._discovery = SeriesDiscovery(
            replace(sources, settings=replace(sources.settings, max_kept_metrics=most_kept))
        )
        self._settings = sources.settings
        self._clock = sources.clock
        self._lock = threading.Lock()
        """Lock for everything; it is never held during a look-up."""
        self._states: dict[str, dict[str, ObjectState]] = {}
        """States by namespace and name. A namespace without objects has no entry."""
        self._namespaces: dict[str, NamespaceObjects] = {}
        self._due: dict[str, DueQueue[str]] = {}
        """When each object is looked up, by namespace and name."""
        self._turns: DueQueue[str] = DueQueue()
        """When the next look-up of each namespace is due; a namespace whose look-up runs is not in it."""
        self._pauses_until: dict[str, float] = {}
        """When the pause of each namespace ends; one that changes its objects all the time pauses, too."""
        self._failures: dict[_Key, int] = {}
        self._running: set[str] = set()
        """Namespaces with a look-up under way."""
        self._generation = 0
        """Generation of the newest catalogue."""
        self._changed = threading.Condition(self._lock)
        """Notified whenever a catalogue or what is known of an object changes."""
        self._is_expecting = False

    def catalogue_of(self, namespace: str | None) -> Catalogue:
        """Return the metrics that objects serve to requests in a namespace."""
        found = None if namespace is None else self._namespaces.get(namespace)
        return _NOTHING if found is None else found.catalogue

    @property
    def namespaces(self) -> Mapping[str, NamespaceObjects]:
        """All namespaces with objects."""
        return dict(self._namespaces)

    def expect(self) -> None:
        """Count the look-ups of all namespaces as pending until objects are put in force."""
        with self._lock:
            self._is_expecting = True

    def await_first_look_ups(self, namespace: str, seconds: float) -> bool:
        """Wait until the series of each object of a namespace have been looked up once; return whether they have been.

        A look-up that failed counts, too.
        """
        with self._lock:
            return self._changed.wait_for(lambda: not self._is_pending(namespace), seconds)

    def replace(self, objects: Iterable[RuleObject], *, are_all: bool) -> None:
        """Put other objects in force. The metrics of rules with unchanged content are kept.

        Unless these are all objects, expected look-ups of all namespaces stay pending.
        """
        wanted: dict[str, dict[str, RuleObject]] = {}
        for found in objects:
            wanted.setdefault(found.content.namespace, {})[found.content.name] = found
        for namespace in {*wanted, *self._states}:
            with self._lock:
                self._replace_in(namespace, wanted.get(namespace, {}))
        with self._lock:
            self._is_expecting &= not are_all
            self._changed.notify_all()

    def take_due(self) -> list[_Key]:
        """Return the objects to look up now, as many as are allowed at once; call `look_up` for each."""
        with self._lock:
            now, taken = self._clock.monotonic(), list[_Key]()
            for namespace in self._turns.pop_due(now, self._free()):
                names = self._due[namespace].pop_due(now, 1)
                if names:
                    self._running.add(namespace)
                    taken.append((namespace, names[0]))
                else:
                    self._enter_turn(namespace, now)
            return taken

    def next_due(self) -> float | None:
        """Return when the next look-up is due, in monotonic seconds; None if none is due or no more may run at once."""
        with self._lock:
            return self._turns.next_due() if self._free() else None

    def look_up(self, key: _Key) -> None:
        """Look up the series of an object, and put another catalogue in force if that changed its metrics."""
        namespace, name = key
        started = self._clock.monotonic()
        result = internal_error_result(LookUpKey(""))
        rule: Rule | None = None
        try:
            with self._lock:
                state = self._states.get(namespace, {}).get(name)
            if state is not None and state.discovered is not None:
                discovered = state.discovered
                rule = discovered.rule
                seconds = self._settings.object_look_up_deadline_seconds
                result = self._look_ups.look_up(look_up_key(discovered.rule), (discovered,), seconds)
        except Exception as error:  # noqa: BLE001 - see below
            # The one place where a fault in one object's look-up is kept from all others.
            _log.exception("looking up the series of MetricRule %s/%s failed: internal error", namespace, name)
            result = internal_error_result(LookUpKey(""), error)
        finally:
            with self._lock:
                self._running.discard(namespace)
                self._enter(key, rule, result, started)

    def _is_pending(self, namespace: str) -> bool:
        rules = (state.discovered for state in self._states.get(namespace, {}).values())
        return self._is_expecting or any(
            rule is not None and not rule.looked_up and rule.failure is None for rule in rules
        )

    def _free(self) -> int:
        return self._settings.max_concurrent_object_look_ups - len(self._running)

    def _replace_in(self, namespace: str, wanted: Mapping[str, RuleObject]) -> None:
        before = self._states.get(namespace, {})
        if {name: state.found for name, state in before.items()} == wanted:
            return
        allowed = oldest_names(wanted.values(), self._settings)
        after = {
            name: self._state_of(found, before.get(name)) if name in allowed else ObjectState(found)
            for name, found in wanted.items()
        }
        now = self._clock.monotonic()
        due = self._due.setdefault(namespace, DueQueue())
        for name in before.keys() - after.keys():
            due.discard(name)
            self._failures.pop((namespace, name), None)
        for name, state in after.items():
            former = before.get(name)
            if state.discovered is None:
                due.discard(name)
            elif former is None or former.discovered is None or not state.discovered.looked_up:
                due.set(name, now)
        self._set_states(namespace, after)
        if not after:
            del self._due[namespace]
            self._turns.discard(namespace)
        elif namespace not in self._running:
            self._enter_turn(namespace, max(now, self._pauses_until.get(namespace, now)))

    def _state_of(self, found: RuleObject, former: ObjectState | None) -> ObjectState:
        if former is not None and former.found == found:
            return former
        if found.rule is None:
            return ObjectState(found)
        known = [former.discovered] if former is not None and former.discovered is not None else []
        discovered = self._discovery.prepare_rule(found.rule, known)
        # Taken from the list: the content of the rule has not changed.
        is_kept = former is not None and former.discovered is not None and not known
        return ObjectState(found, discovered, former.series if former is not None and is_kept else None)

    def _enter(self, key: _Key, rule: Rule | None, result: LookUpResult, started: float) -> None:
        """Record the result of a look-up, and schedule the next ones of the object and of the namespace.

        `rule` is the one whose series were looked up. If the object has another one by now, that one is due at once.
        """
        namespace, name = key
        now = self._clock.monotonic()
        states = self._states.get(namespace, {})
        state = states.get(name)
        if state is not None and state.discovered is not None and state.discovered.rule is not rule:
            self._due[namespace].set(name, now)
        elif state is not None and state.discovered is not None:
            discovered = self._discovery.update_rule(result, state.discovered)
            after = replace(
                state, discovered=discovered, series=result.series if result.failure is None else state.series
            )
            if _differs(after, state):
                self._set_states(namespace, {**states, name: after})
            else:
                states[name] = after
            self._due[namespace].set(name, self._next(key, result, started, now))
        pauses = {one: until for one, until in self._pauses_until.items() if until > now}
        self._pauses_until = pauses | {namespace: now + _PAUSE_RATIO * (now - started)}
        if namespace in self._due:
            self._enter_turn(namespace, self._pauses_until[namespace])

    def _next(self, key: _Key, result: LookUpResult, started: float, now: float) -> float:
        number = sum(map(len, self._states.values()))
        interval = max(self._settings.relist_interval_seconds, number / _LOOK_UPS_A_SECOND)
        if not result.unreachable:
            self._failures.pop(key, None)
            return max(started + interval, now)
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return now + retry_after(failures, interval)

    def _enter_turn(self, namespace: str, least: float) -> None:
        due = self._due[namespace].next_due()
        if due is None:
            self._turns.discard(namespace)
        else:
            self._turns.set(namespace, max(due, least))

    def _set_states(self, namespace: str, states: dict[str, ObjectState]) -> None:
        self._generation += 1
        self._changed.notify_all()
        if not states:
            self._states.pop(namespace, None)
            self._namespaces.pop(namespace, None)
            return
        self._states[namespace] = states
        self._namespaces[namespace] = namespace_objects(tuple(states.values()), self._settings, self._generation)


def _shapes_of_owner(_: Collection[str]) -> SeriesShapes:
    """Return the collector for the series of one namespace, that of the rule's owner."""
    return SeriesShapes(MOST_NAMES, MOST_LABELS, MOST_BYTES, longest_name=LONGEST_NAME)


def _differs(one: ObjectState, other: ObjectState) -> bool:
    """Return whether two states of an object differ in the catalogue or in the published state of the object."""
    if one.discovered is None or other.discovered is None:
        return one != other
    has_failed = one.discovered.failure is None, other.discovered.failure is None
    return one.series != other.series or one.discovered.serves_others(other.discovered) or len({*has_failed}) > 1
