"""Queries Prometheus for vectors and ranges, a few at a time. An answer that may not be complete is an error."""

from __future__ import annotations

from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from adapter.foundation.sources.prometheus.answers.annotations import warnings_of_stores
from adapter.foundation.sources.prometheus.answers.answer_elements import AnswerLimits
from adapter.foundation.sources.prometheus.answers.ranges import RangeAnswer, RangeLimits
from adapter.foundation.sources.prometheus.errors import UnexpectedAnswerError, refuse_partial
from adapter.foundation.time.pace import UNPACED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from recommender.kinds.resources.workloads import PodContainer

QUERY_SECONDS: Final = 120.0
AT_ONCE: Final = 3
"""The number of queries in flight: one is decoded while others are calculated, and few answers are in memory."""
_LIMITS: Final = AnswerLimits(max_bytes=512 * 2**20, max_samples=2_000_000)
_RANGE_LIMITS: Final = RangeLimits(max_bytes=256 * 2**20, max_series=500_000)

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Element:
    """One sample of a vector."""

    labels: tuple[str, ...]
    """The values of the requested labels; empty for a label that the series lacks."""
    value: float


def vector(
    client: PrometheusClient, query: str, at: float, labels: tuple[str, ...], *, is_overridden: bool = False
) -> list[Element]:
    """Return the samples of a query at a time. Raises PrometheusError, also for an answer that may be partial.

    `is_overridden` means that the query is not a built-in one, so that what the query engine left out counts as well.
    """
    answer = client.instant(query, timeout_seconds=QUERY_SECONDS, at=at, limits=_LIMITS)
    _refuse_partial(query, answer.warnings, is_overridden=is_overridden)
    return [
        Element(tuple(sample.labels.get(label, "") for label in labels), sample.value)
        for batch in answer.batches(UNPACED)
        for sample in batch
    ]


def matrix(
    client: PrometheusClient, query: str, start: float, end: float, step_seconds: int, *, is_overridden: bool = False
) -> RangeAnswer:
    """Return the series of a query between two times. Raises PrometheusError as `vector` does."""
    answer = client.range(
        query, start=start, end=end, step_seconds=step_seconds, timeout_seconds=QUERY_SECONDS, limits=_RANGE_LIMITS
    )
    _refuse_partial(query, answer.warnings, is_overridden=is_overridden)
    return answer


def _refuse_partial(query: str, warnings: Sequence[str], *, is_overridden: bool) -> None:
    refuse_partial(query, warnings if is_overridden else warnings_of_stores(warnings))


def in_turn(ask: Callable[[T], R], what: Iterable[T]) -> Iterator[R]:
    """Yield the answer to each question, in order; at most `AT_ONCE` are under way or wait to be taken at a time."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        waiting = deque(what)
        asked = deque(threads.submit(ask, waiting.popleft()) for _ in range(min(AT_ONCE, len(waiting))))
        try:
            while asked:
                answer = asked.popleft().result()
                if waiting:
                    asked.append(threads.submit(ask, waiting.popleft()))
                yield answer
        finally:
            for each in asked:
                each.cancel()


def doubled_containers(query: str, containers: Iterable[PodContainer]) -> frozenset[PodContainer]:
    """Return the containers that have several series, so that it is unknown which series is right.

    Raises UnexpectedAnswerError if all containers have several, because the query then lacks an aggregation. The owners
    of some containers may cause such series themselves, which must not harm other containers.
    """
    counts = Counter(containers)
    found = frozenset(pod for pod, count in counts.items() if count > 1)
    if found and len(found) == len(counts):
        pod = min(found)
        raise UnexpectedAnswerError(
            query,
            f"several series are of container {pod.container!r} of pod {pod.namespace}/{pod.pod}: "
            "aggregate, such as with max by (namespace, pod, container)",
        )
    return found
