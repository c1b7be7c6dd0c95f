"""Writes the recommended size to the scale subresource of each target, and retries until the target has that size.

    writer = ScaleWriter(objects, resolve, Fence(seconds, elector.may_write), hooks)
    tasks.running("scale calls", writer.run)
    …
    writer.decided(record.name, [(record, valid_until)])

Each attempt reads the scale and replaces exactly that version, so that no change of another client is lost, an equal
size is never written, and a write with an unknown outcome is followed by a read. Each attempt has a thread of its own
and is bounded in time: a target that hangs does not delay the others.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from adapter.foundation.service.runtime.logs import StateLog, fields
from adapter.foundation.time.clock import Clock, Moment
from adapter.foundation.time.rate_limit import RateLimit
from recommender.outputs.pending_writes import PendingWrite, PendingWrites, Start, pending_writes_of, refused_targets
from recommender.outputs.scale_attempt import ScaleAttempt
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import Attempt, ScaleOutcome, SendingTerms

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.foundation.sources.kubernetes.writing import Fence, GetsAndReplaces
    from recommender.decisions.record import Record, TargetReference

_log = logging.getLogger(__name__)
_IDLE_SECONDS = 1.0
"""The longest sleep of the loop, since a write for a target can expire while nothing else happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleHooks:
    """Hooks for scale calls, which run in the threads of the attempts."""

    before_write: Callable[[PendingWrite], bool]
    """Stores the effects of a call on the memory, such as a cool-down, before the call is sent. Returns whether they
    were stored; if not, the call is not sent."""
    count: Callable[[str, ScaleResult], None]
    """Called with the recommendation and the result of each attempt, and of each write that ends without an attempt."""
    on_result: Callable[[ScaleOutcome], None]
    """Called after each attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleLimits:
    """Limits on the number and the rate of attempts."""

    at_once: int = 12
    """The maximum number of attempts under way."""
    suspects_at_once: int = 6
    """The maximum number of attempts under way for targets whose last attempt failed."""
    per_second: float = 10.0
    """The maximum number of attempts that begin per second, on average."""
    burst: int = 20


@dataclass(frozen=True, slots=True)
class ScaleEffects:
    """The effects that the writer needs besides the API server."""

    clock: Clock = field(default_factory=Clock)
    start: Callable[[Callable[[], None]], None] = lambda work: threading.Thread(
        target=work, name="scale call", daemon=True
    ).start()


class ScaleWriter:
    """Carries out the scale calls of the latest decisions. Thread-safe."""

    def __init__(
        self,
        objects: GetsAndReplaces,
        resolve: ResolveResource,
        fence: Fence,
        hooks: ScaleHooks,
        *,
        attempt: Attempt | None = None,
        limits: ScaleLimits = ScaleLimits(),
        effects: ScaleEffects = ScaleEffects(),
    ) -> None:
        """`fence` guards each write; `longest_fenced_write_seconds` returns how long a fence may be.

        `attempt` carries out a write; by default, the scale subresource of its target is written.
        """
        self._make = ScaleAttempt(objects, resolve) if attempt is None else attempt
        self._fence = fence
        self._hooks = hooks
        self._limits = limits
        self._effects = effects
        self._pending = PendingWrites(hooks.count)
        self._running = 0
        self._suspects = 0
        self._rate = RateLimit(limits.per_second, limits.burst, clock=effects.clock.monotonic)
        self._changed = threading.Condition()
        self._states = StateLog(_log)
        self._failures: dict[str, dict[TargetReference, str]] = {}
        """Why the last call for each target failed, by recommendation."""

    def follow_decision(self, recommendation: str, decided: Iterable[tuple[Record, float]]) -> None:
        """Follow the latest decision of a recommendation, and drop its older writes that are not repeated.

        `decided` holds pairs of a record and the time, in Unix seconds, after which no call of that
        record is sent. With `forEach`, there is one record for each target.
        """
        decided = tuple(decided)
        for name, _target in refused_targets(record for record, _ in decided):
            self._hooks.count(name, ScaleResult.REFUSED)
        self.follow_writes(
            recommendation, [write for record, until in decided for write in pending_writes_of(record, until)]
        )

    def follow_writes(self, recommendation: str, writes: Sequence[PendingWrite]) -> None:
        """Follow the writes of a recommendation, and drop its earlier writes for any other targets."""
        targets = {write.target for write in writes}
        with self._changed:
            for write in writes:
                self._pending.put(write, self._now())
            self._pending.withdraw(lambda write: write.recommendation != recommendation or write.target in targets)
            failures = self._failures.pop(recommendation, {})
            if left := {target: error for target, error in failures.items() if target in targets}:
                self._failures[recommendation] = left
            self._changed.notify_all()

    def retain(self, recommendations: Collection[str]) -> None:
        """Drop the writes of all recommendations that are not named, such as those no longer configured."""
        with self._changed:
            self._pending.withdraw(lambda write: write.recommendation in recommendations)
            self._failures = {name: each for name, each in self._failures.items() if name in recommendations}
            self._changed.notify_all()

    def failures(self) -> dict[tuple[str, TargetReference], str]:
        """Return why the last call failed, by recommendation and target, as long as its decision is in force."""
        with self._changed:
            return {(name, target): error for name, each in self._failures.items() for target, error in each.items()}

    def clear(self) -> None:
        """Drop all writes, as when this process stops leading."""
        self.retain(())

    def run(self, stop: threading.Event) -> None:
        """Start attempts as they become due, until `stop` is set."""
        while not stop.is_set():
            self.step()
            with self._changed:
                self._changed.wait(self._idle_seconds())

    def step(self) -> None:
        """Start the attempts that are due now."""
        while (start := self._next()) is not None:
            try:
                self._effects.start(partial(self._attempt, start))
            except RuntimeError as error:
                # The system cannot start another thread for this process at present.
                self._on_end(start, ScaleOutcome(start.write, ScaleResult.ERROR, message=str(error)))

    def _next(self) -> Start | None:
        with self._changed:
            now, due = self._now(), self._pending.next_due()
            is_full = self._running >= self._limits.at_once
            if due is None or due > now.monotonic or is_full or not self._rate.take(0.0):
                return None
            start = self._pending.start(now, suspects_too=self._suspects < self._limits.suspects_at_once)
            if start is not None:
                self._running += 1
                self._suspects += start.is_suspect
            return start

    def _idle_seconds(self) -> float:
        """Return how many seconds the loop should sleep. The caller must hold `_changed`."""
        due = self._pending.next_due()
        if due is None or self._running >= self._limits.at_once:
            return _IDLE_SECONDS
        return min(_IDLE_SECONDS, max(due - self._now().monotonic, 1.0 / self._limits.per_second))

    def _attempt(self, start: Start) -> None:
        outcome = ScaleOutcome(start.write, ScaleResult.ERROR, message="internal error")
        try:
            outcome = self._make(start.write, self._terms(start.write))
        finally:
            self._on_end(start, outcome)
        self._hooks.on_result(outcome)

    def _on_end(self, start: Start, outcome: ScaleOutcome) -> None:
        with self._changed:
            self._running -= 1
            self._suspects -= start.is_suspect
            self._note_failure(outcome)
            self._pending.record_result(
                start.write,
                outcome.result,
                self._now(),
                outcome.retry_after_seconds,
                is_outdated=outcome.is_outdated,
                is_undone=outcome.is_undone,
            )
            self._changed.notify_all()
        self._hooks.count(start.write.recommendation, outcome.result)
        self._report(outcome)

    def _note_failure(self, outcome: ScaleOutcome) -> None:
        """Remember why a call failed until one succeeds. The caller must hold `_changed`."""
        write = outcome.write
        if outcome.result is ScaleResult.ERROR:
            self._failures.setdefault(write.recommendation, {})[write.target] = outcome.message
        elif outcome.result in {ScaleResult.OK, ScaleResult.UNCHANGED}:
            self._failures.get(write.recommendation, {}).pop(write.target, None)

    def _terms(self, write: PendingWrite) -> SendingTerms:
        return SendingTerms(partial(self._refusal, write), partial(self._hooks.before_write, write), self._fence)

    def _refusal(self, write: PendingWrite) -> ScaleResult | None:
        with self._changed:
            return self._pending.may_send(write, self._now())

    def _now(self) -> Moment:
        return self._effects.clock.moment()

    def _report(self, outcome: ScaleOutcome) -> None:
        write = outcome.write
        about: dict[str, Any] = {
            "recommendation": write.recommendation,
            "target": str(write.target),
        }
        if write.resizing is not None:
            about["requests"] = len(write.resizing.sizes)
        elif not write.withdraws:
            about["replicas"] = write.replicas
            if outcome.stored_instead is not None:
                about["stored"] = outcome.stored_instead
        if write.machines:
            about["machines"] = ", ".join(one.provider_id for one in write.machines)
        key = str(write.target)
        if outcome.result is ScaleResult.ERROR:
            self._states.failed(key, f"a scale call failed and will be repeated: {outcome.message}", **about)
        elif outcome.result is ScaleResult.REFUSED:
            self._states.failed(key, f"the size is not written: {outcome.message}", level=logging.WARNING, **about)
        elif outcome.result in {ScaleResult.OK, ScaleResult.UNCHANGED}:
            self._states.recovered(key, "scale calls succeed again", **about)
        if outcome.result is ScaleResult.OK:
            _log.info(
                "resized" if write.resizing is not None else "withdrawn" if write.withdraws else "scaled",
                extra=fields(**about, before=outcome.before, reason=write.reason),
            )
