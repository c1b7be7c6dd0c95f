"""Handles plans that Prometheus refused: a plan is abandoned where it failed, and tried again later (pure).

A join whose right-hand series are doubled for a moment, as when an exporter is replaced, is refused; so is a query that
no longer fits a limit. Meanwhile, the next narrower plan answers, but only when somebody asks: each request pays for at
most one of its queries. The wider plan is tried again after 5, 10, 20 and then every 40 seconds, once two requests have
come; a trial asks both forms and compares them. A refusal that does not pass by itself, such as of a text that cannot
be parsed or an answer that is too large, is retried less and less often, in the end every ten minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from adapter.foundation.time.backoff import backoff_seconds
from adapter.metrics.rulebook.model import PlanKind

Place: TypeAlias = "tuple[PlanKind, str | None]"
"""A plan, and the namespace in which it failed; None for the wide plan, which asks for all namespaces."""

WIDE_PLACE: Place = (PlanKind.WIDE, None)

FIRST_TRIAL_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 40.0
"""Longest back-off, so that a plan is used again within a minute after the fault has ended."""
LONGEST_LASTING_PAUSE_SECONDS = 600.0
REQUESTS_A_TRIAL = 2
"""A trial sends two queries: the wider one and the exact one."""
_RELAPSE_SECONDS = 60.0
"""A plan that fails again within this time continues its back-off where it had stopped."""


def pause_after(failures: int, *, lasting: bool) -> float:
    """Return the seconds until a plan is tried again after that many consecutive failures."""
    longest = LONGEST_LASTING_PAUSE_SECONDS if lasting else LONGEST_PAUSE_SECONDS
    return backoff_seconds(failures, first_seconds=FIRST_TRIAL_SECONDS, longest_seconds=longest)


class _Setback:
    __slots__ = ("due", "failures", "lasting", "paid", "trying")

    def __init__(self) -> None:
        self.due = 0.0
        self.failures = 0
        self.lasting = False
        self.paid = 0
        self.trying = False


class Setbacks:
    """The plans of one group that failed. Not thread-safe: its owner locks, but not to read whether there are any."""

    __slots__ = ("_lifted", "_standing")

    def __init__(self) -> None:
        self._standing: dict[Place, _Setback] = {}
        self._lifted: tuple[float, int] = (0.0, 0)
        """When a failure was last lifted, and how many failures in a row it had been."""

    def __bool__(self) -> bool:
        return bool(self._standing)

    def __contains__(self, place: Place) -> bool:
        return place in self._standing

    def __iter__(self) -> Iterator[Place]:
        return iter(self._standing)

    def fail(self, place: Place, now: float, *, lasting: bool = False) -> None:
        """Note that a plan was refused, in use or in a trial."""
        setback = self._standing.get(place)
        if setback is None:
            setback = self._standing[place] = _Setback()
            lifted_at, failures = self._lifted
            setback.failures = failures if failures and now - lifted_at < _RELAPSE_SECONDS else 0
        setback.failures += 1
        setback.lasting = lasting
        setback.paid = 0
        setback.trying = False
        setback.due = now + pause_after(setback.failures, lasting=lasting)

    def pay(self, place: Place, now: float) -> bool:
        """Let a request pay for the trial of a plan; return whether it paid, in which case it pays for no other."""
        setback = self._standing.get(place)
        if setback is None or setback.trying or now < setback.due:
            return False
        setback.paid += 1
        return True

    def begin(self, place: Place) -> bool:
        """Return whether the trial must begin now: it is paid for and has not begun."""
        setback = self._standing.get(place)
        if setback is None or setback.trying or setback.paid < REQUESTS_A_TRIAL:
            return False
        setback.trying = True
        return True

    def lift(self, place: Place, now: float) -> None:
        """Forget a failure: the plan works. If it is the wide one, no narrower plan is needed, either."""
        gone = list(self._standing) if place == WIDE_PLACE else [place]
        for one in gone:
            setback = self._standing.pop(one, None)
            if setback is not None and one == place:
                self._lifted = now, setback.failures

    def leave(self, namespace: str | None) -> None:
        """Forget the failures in a namespace that no longer has requests."""
        self._standing.pop((PlanKind.NAMESPACE, namespace), None)
