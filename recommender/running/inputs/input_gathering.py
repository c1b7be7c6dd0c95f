"""Collects the inputs of a poll: each lookup in a thread of its own, and all of them within one deadline.

A lookup that is late counts as unknown in this poll. It is not sent a second time while it is still under way, so a
server that hangs costs one thread for each lookup, however many polls pass.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from adapter.foundation.cluster.values.state import ClusterState, Observed, Unknown
from recommender.decisions.inputs import ConfigMapData, Inputs, TargetState, WriteRefusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping

    from recommender.configuration.needs import AskedQuery
    from recommender.decisions.loads.load_inputs import LoadInputs
    from recommender.decisions.record import TargetReference
    from recommender.running.loads.load_needs import LoadNeed

T = TypeVar("T")
K = TypeVar("K", bound="Hashable")

Submit: TypeAlias = "Callable[[Callable[[], None]], None]"
"""Runs the work on another thread, at once or when one is free."""
ConfigMapName: TypeAlias = tuple[str, str]
"""The namespace and the name of a ConfigMap."""
ConfigMapInput: TypeAlias = "Observed[ConfigMapData | None] | Unknown"
TargetInput: TypeAlias = "Observed[TargetState | None] | Unknown"
ReadCluster: TypeAlias = "Callable[[], ClusterState]"
ReadUsage: TypeAlias = "Callable[[], Mapping[str, Mapping[TargetReference, Observed[object] | Unknown] | Unknown]]"
ReadTargets: TypeAlias = "Callable[[Collection[TargetReference]], Mapping[TargetReference, TargetInput]]"

_NO_LOADS = Unknown("nothing looks loads up here")

APART_SECONDS = 3.0
"""How long a poll waits at most for lookups that must not delay other decisions: those of objects, and all if there are
several backends. The results of slower ones count in the next poll."""
SLOW_SECONDS = 1.0
"""A lookup that takes longer runs in a separate pool of threads in the next poll."""


@dataclass(frozen=True, slots=True)
class InputSources:
    """The functions that provide inputs. Each answers within its own time limit and never raises."""

    cluster: ReadCluster
    """Returns the facts of the cluster from memory."""
    query: Callable[[AskedQuery], Observed[float] | Unknown]
    config_map: Callable[[str, str], ConfigMapInput]
    targets: ReadTargets
    """Looks up all targets at the same time, so that a hanging one does not delay the others."""
    load: Callable[[LoadNeed], Observed[LoadInputs] | Unknown] = lambda _: _NO_LOADS
    usage: ReadUsage = dict
    """Returns the usage from memory."""
    refusals: Callable[[], Mapping[tuple[str, TargetReference], WriteRefusal]] = dict
    """Returns refusals from memory."""
    failures: Callable[[], Mapping[tuple[str, TargetReference], str]] = dict
    """Returns, from memory, why scale calls failed."""
    settled: Callable[[], Mapping[tuple[str, TargetReference], object]] = dict
    """Returns, from memory, the sizes that are in place."""


@dataclass(frozen=True, slots=True)
class LookUps:
    """The look-ups that a configuration needs."""

    queries: frozenset[AskedQuery] = frozenset()
    config_maps: frozenset[ConfigMapName] = frozenset()
    targets: frozenset[TargetReference] = frozenset()
    loads: frozenset[LoadNeed] = frozenset()
    payers: Mapping[AskedQuery, str] = field(default_factory=dict)
    """The namespace of the object that needs a query, by query; empty or absent for a query of the file."""


@dataclass(frozen=True, slots=True)
class LookUpThreads:
    """Threads of one kind of lookup."""

    submit: Submit
    submit_slow: Submit
    """Submits lookups that were slow last time, so that hanging ones leave threads for the others."""
    submit_for: Callable[[str, Callable[[], None]], None] | None = None
    """Submits lookups of objects, given the namespace that pays for the lookup. None if they are treated like those of
    the file."""


ThreadsOf: TypeAlias = "Callable[[str], LookUpThreads]"
"""Returns the threads of a backend, which lookups of other backends cannot occupy."""


class Gatherer:
    """Collects inputs. `gather` is for one thread."""

    def __init__(
        self,
        sources: InputSources,
        query_threads: LookUpThreads | ThreadsOf,
        config_map_threads: LookUpThreads,
        clock: Callable[[], float] = time.monotonic,
        load_threads: LookUpThreads | ThreadsOf | None = None,
    ) -> None:
        """Keep the threads of each kind separate: a hanging Prometheus must not delay the ConfigMaps.

        Loads take the threads of queries unless they have their own.
        """
        self._sources = sources
        of_queries, of_loads = _threads_of(query_threads), _threads_of(load_threads or query_threads)
        self._queries: _Parallel[AskedQuery, float] = _Parallel(
            sources.query, lambda query: of_queries(query.backend), "the query has not been answered yet", clock
        )
        self._config_maps: _Parallel[ConfigMapName, ConfigMapData | None] = _Parallel(
            lambda name: sources.config_map(*name),
            lambda _: config_map_threads,
            "the ConfigMap has not been read yet",
            clock,
        )
        self._loads: _Parallel[LoadNeed, LoadInputs] = _Parallel(
            sources.load, lambda need: of_loads(need.backend), "the load has not been answered yet", clock
        )
        self._clock = clock

    def gather(self, wanted: LookUps, seconds: float) -> Inputs:
        """Return the inputs; values that arrive after `seconds` are `Unknown`. Targets have their own time limit."""
        until = self._clock() + seconds
        # A slow backend must not delay the decisions that query another one.
        backends = {each.backend for each in wanted.queries} | {each.backend for each in wanted.loads}
        self._loads.start(wanted.loads, lambda need: need.namespace, are_apart=len(backends) > 1)
        self._queries.start(wanted.queries, lambda query: wanted.payers.get(query, ""), are_apart=len(backends) > 1)
        self._config_maps.start(wanted.config_maps)
        targets = self._sources.targets(wanted.targets)

        def left() -> float:
            return max(0.0, until - self._clock())

        queries = by_backend(self._queries.results(wanted.queries, left))
        config_maps = self._config_maps.results(wanted.config_maps, left)
        loads = {
            need.name: found.value if isinstance(found, Observed) else found
            for need, found in self._loads.results(wanted.loads, left).items()
        }
        # This comes last, so that it is as recent as the lookups.
        return Inputs(
            self._sources.cluster(),
            queries.pop("", {}),
            config_maps,
            targets,
            loads,
            self._sources.usage(),
            self._sources.refusals(),
            self._sources.failures(),
            self._sources.settled(),
            queries_elsewhere=queries,
        )

    def forget(self) -> None:
        """Use no answer, not even one that is still to come, to what was asked until now: another process leads."""
        for each in (self._queries, self._config_maps, self._loads):
            each.forget()


def _threads_of(threads: LookUpThreads | ThreadsOf) -> ThreadsOf:
    return (lambda _backend: threads) if isinstance(threads, LookUpThreads) else threads


def by_backend(
    found: Mapping[AskedQuery, Observed[float] | Unknown],
) -> dict[str, dict[str, Observed[float] | Unknown]]:
    """Return the values by backend and PromQL text."""
    sorted_out: dict[str, dict[str, Observed[float] | Unknown]] = {}
    for query, value in found.items():
        sorted_out.setdefault(query.backend, {})[query.text] = value
    return sorted_out


@dataclass(slots=True)
class _PendingLookUp(Generic[T]):
    """A lookup that has been submitted."""

    done: threading.Event
    result: Observed[T] | Unknown
    seconds: float = 0.0
    """How long the lookup took, without the wait for a thread."""
    is_forgotten: bool = False
    """Whether the result is not to be used: another process has led since the lookup was submitted."""


class _Parallel(Generic[K, T]):
    """Lookups of one kind in parallel; each of them runs at most once at a time."""

    def __init__(
        self,
        look_up: Callable[[K], Observed[T] | Unknown],
        threads: Callable[[K], LookUpThreads],
        late: str,
        clock: Callable[[], float],
    ) -> None:
        self._look_up = look_up
        self._threads = threads
        self._late = Unknown(late)
        self._clock = clock
        self._under_way: dict[K, _PendingLookUp[T]] = {}
        self._slow: frozenset[K] = frozenset()
        self._apart: frozenset[K] = frozenset()
        """Lookups that must not delay other decisions: those of objects, and all if there are several backends."""
        self._earlier: dict[K, Observed[T] | Unknown] = {}
        """Answers of lookups in `_apart` that came too late for their poll."""
        self._failures: dict[K, Unknown] = {}
        """Why the previous lookup failed, which says more about a server that hangs than that the next one is late."""

    def start(self, keys: Collection[K], payer: Callable[[K], str] = lambda _: "", *, are_apart: bool = False) -> None:
        self._apart = frozenset(
            key for key in keys if are_apart or (payer(key) and self._threads(key).submit_for is not None)
        )
        self._earlier = {key: found for key, found in self._earlier.items() if key in self._apart}
        for key in keys:
            pending = self._under_way.get(key)
            if pending is not None and (key in self._apart or pending.is_forgotten) and pending.done.is_set():
                if not pending.is_forgotten:
                    self._earlier[key] = pending.result
                if pending.seconds > SLOW_SECONDS:
                    self._slow |= {key}
                pending = None
            if pending is None:
                under_way = self._under_way[key] = _PendingLookUp[T](threading.Event(), self._late)
                try:
                    self._submit(key, payer(key), partial(self._run, key, under_way))
                except RuntimeError as error:
                    # The system cannot start another thread at present: the next poll sends the look-up again.
                    under_way.result = Unknown(f"the look-up has not been sent: {error}")
                    under_way.done.set()

    def _submit(self, key: K, namespace: str, work: Callable[[], None]) -> None:
        threads = self._threads(key)
        if namespace and threads.submit_for is not None:
            threads.submit_for(namespace, work)
        elif key in self._slow:
            threads.submit_slow(work)
        else:
            threads.submit(work)

    def results(self, keys: Collection[K], left: Callable[[], float]) -> Mapping[K, Observed[T] | Unknown]:
        """Return the results that have arrived; wait for the rest as long as there is time left.

        There is no wait for a lookup in `_apart` that was slow last time, so that it delays no other decision.
        """
        found: dict[K, Observed[T] | Unknown] = {}
        until = self._clock() + APART_SECONDS
        # Lookups in `_apart` come last, as they may use up the time.
        for key in sorted(keys, key=lambda key: key in self._apart):
            seconds = left()
            if key in self._apart:
                seconds = 0.0 if key in self._slow else min(seconds, max(0.0, until - self._clock()))
            under_way = self._under_way[key]
            if not under_way.is_forgotten and under_way.done.wait(seconds):
                found[key] = under_way.result
                self._earlier.pop(key, None)
            else:
                found[key] = self._earlier.get(key) or self._failures.get(key, self._late)
        done = {key: each for key, each in self._under_way.items() if each.done.is_set()}
        self._slow = frozenset(key for key in self._slow if key not in done and key in keys) | frozenset(
            key for key, each in done.items() if each.seconds > SLOW_SECONDS
        )
        self._failures = {key: why for key, why in self._failures.items() if key in keys and key not in done} | {
            key: each.result for key, each in done.items() if isinstance(each.result, Unknown) and not each.is_forgotten
        }
        # A lookup that is no longer wanted is forgotten, too, once it is done.
        self._under_way = {key: each for key, each in self._under_way.items() if key not in done}
        return found

    def forget(self) -> None:
        """Use no answer to what was asked until now; what is under way is still not sent a second time."""
        self._earlier, self._failures = {}, {}
        for under_way in self._under_way.values():
            under_way.is_forgotten = True

    def _run(self, key: K, under_way: _PendingLookUp[T]) -> None:
        if under_way.done.is_set():
            # It got no thread in time, and a later poll has sent it again.
            return
        started = self._clock()
        try:
            under_way.result = self._look_up(key)
        except Exception as error:  # noqa: BLE001 - the edge of a thread: one lookup must not end it for the others
            under_way.result = Unknown(f"the look-up failed with an internal error ({type(error).__name__}: {error})")
        finally:
            under_way.seconds = self._clock() - started
            under_way.done.set()
