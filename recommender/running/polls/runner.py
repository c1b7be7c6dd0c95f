"""The recommender's loop: gather inputs, decide each recommendation, publish, act.

A poll happens every `pollInterval`, a second after a relevant change of the cluster, and when a decision asks to be
made again. Each recommendation is decided by itself: an error in one of them becomes its record and does not affect the
others. Only the leader decides.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from adapter.foundation.time.clock import ForwardSteps
from recommender.configuration.changes import unchanged_names
from recommender.decisions.policy_settings import Output
from recommender.decisions.publication import Publication
from recommender.decisions.record import Record, Status
from recommender.running.inputs.due_targets import MOST_OBJECT_LOOK_UPS, DueTargets
from recommender.running.polls.recommendation_log import RecommendationLog

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence

    from adapter.foundation.time.clock import Clock
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.loop import Decided, Decision
    from recommender.running.inputs.input_gathering import Gatherer, LookUps
    from recommender.running.inputs.poll_plan import PollPlan
    from recommender.running.memory.memories import Memories
    from recommender.running.polls.leadership import Leadership

_log = logging.getLogger(__name__)

COLLECT_SECONDS = 1.0
"""How long changes of the cluster are collected before they lead to a poll."""
_STOP_NOTICED_SECONDS = 1.0
"""The longest time until a stop is noticed. Each check costs processor time, even of an idle process."""
GATHER_SECONDS = 8.0
"""The longest time that a poll waits for its lookups."""


class Decisions(Protocol):
    """Makes the decisions of polls. Not thread-safe."""

    def decide(self, plan: PollPlan, inputs: Inputs, now: float) -> Sequence[Decided]:
        """Return the decisions in the order of the configuration; never raises."""

    def forget(self) -> None:
        """Drop everything that is under way: another process leads."""


class Effects(Protocol):
    """The effects of decisions outside of this process."""

    def act(self, configuration: Configuration, decisions: Sequence[Decision], now: float) -> None:
        """Begin to carry out the decisions; return at once."""

    def stand_down(self) -> None:
        """Abandon everything that is under way: this process no longer leads."""


class Latest:
    """Holds the last publication, which readers get without waiting."""

    def __init__(self, published: Callable[[Publication], None] = lambda _: None) -> None:
        """Call `published` with each publication, in the thread that publishes it."""
        self._publication = Publication()
        self._published = published

    def get(self) -> Publication:
        """Return the last publication."""
        return self._publication

    def publish(self, publication: Publication) -> None:
        """Replace the publication."""
        self._publication = publication
        self._published(publication)


@dataclass(slots=True, kw_only=True)
class Runner:
    """Runs polls in one thread."""

    plan: Callable[[], PollPlan]
    gatherer: Gatherer
    decisions: Decisions
    leadership: Leadership
    memories: Memories
    effects: Effects
    latest: Latest
    clock: Clock
    wake: threading.Event
    """Set when an input has changed: a poll follows soon."""
    count_poll: Callable[[float, int], None] = lambda _seconds, _failures: None
    """Called with the duration of each poll, and with how many recommendations have no value because of an error."""
    report_poll: Callable[[Sequence[Record]], None] = lambda _: None
    """Called with the records of each poll, or with no records while another process leads."""
    due_targets: DueTargets = field(default_factory=DueTargets)
    object_targets: DueTargets = field(default_factory=lambda: DueTargets(MOST_OBJECT_LOOK_UPS))
    _log: RecommendationLog = field(default_factory=RecommendationLog)
    """The last log line of each recommendation."""
    _steps: ForwardSteps = field(default_factory=ForwardSteps)
    _decided: float = -math.inf
    """When decisions were last made, by the monotonic clock."""
    _again: float = math.inf
    """When the next decision is requested, by the wall clock; infinite if none is requested."""

    def run(self, stop: threading.Event) -> None:
        """Poll until the process is asked to stop."""
        while not stop.is_set():
            started = self.clock.monotonic()
            self.poll()
            interval = self.plan().configuration.poll_interval_seconds
            self._sleep(stop, self._next_poll(started + interval))

    def poll(self) -> None:
        """Decide everything once, if this process leads."""
        self._again = math.inf
        if not self.leadership.is_leader():
            self._follow()
            return
        started = self.clock.monotonic()
        plan = self.plan()
        seconds = min(GATHER_SECONDS, plan.configuration.poll_interval_seconds)
        inputs = self.gatherer.gather(self._look_ups(plan), seconds)
        now = self._now()
        inputs = self._with_last_states(plan, inputs, now)
        self._decided = self.clock.monotonic()
        decided = self.decisions.decide(plan, inputs, now)
        unchanged = unchanged_names(plan.configuration, self.plan().configuration)
        if unchanged is None:
            # The next poll follows at once; a target that is no longer listed must not be scaled by this one.
            return
        decided = [each for each in decided if each.name in unchanged]
        # The leadership may have ended while inputs were gathered.
        if not self.leadership.is_leader():
            self._follow()
            return
        self._again = next_decision_at(decided)
        records = self._carried_out(plan.configuration, decided, now)
        self._log.changes(records)
        failures = sum(record.status is Status.ERROR for record in records)
        self.count_poll(self.clock.monotonic() - started, failures)
        self.report_poll(records)

    def _now(self) -> float:
        """Return the time of the wall clock; if that was set forward, no brake ends sooner because of it."""
        moment = self.clock.moment()
        gained = self._steps.seconds_since_last(moment)
        if gained:
            self.memories.prolong(gained)
        return moment.wall

    def _with_last_states(self, plan: PollPlan, inputs: Inputs, now: float) -> Inputs:
        """Return the inputs together with the last state of targets that were not looked up in this poll."""
        fresh_seconds = plan.configuration.stale_after_seconds
        targets = self.due_targets.looked_up(inputs.targets, now, fresh_seconds)
        return replace(inputs, targets=self.object_targets.looked_up(targets, now, fresh_seconds))

    def _carried_out(self, configuration: Configuration, decided: Sequence[Decided], now: float) -> Sequence[Record]:
        """Publish the decisions, store their memory and start their writes; return all records, including refusals."""
        decisions = [decision for each in decided for decision in each.decisions]
        records = (
            *(decision.record for decision in decisions),
            *(refused.record(now) for refused in configuration.refused),
        )
        self.latest.publish(
            Publication(
                leads=True,
                leader=self.leadership.holder(),
                time=now,
                valid_until=now + _valid_seconds(configuration),
                records=records,
            )
        )
        for each in decided:
            if each.memory is not None:
                self.memories.remember(each.name, each.memory)
        self.memories.keep_objects(configuration.object_names)
        scaling = configuration.names_with(Output.SCALE)
        self.due_targets.follow_records(record for record in records if record.name in scaling)
        self.object_targets.note_sizes(records)
        self.effects.act(configuration, decisions, now)
        return records

    def _next_poll(self, interval_ends: float) -> float:
        """Return the time of the next poll if nothing changes; like `interval_ends`, by the monotonic clock."""
        now = self.clock.monotonic()
        return now + seconds_to_next_poll(interval_ends - now, self._again - self.clock.wall(), now - self._decided)

    def _look_ups(self, plan: PollPlan) -> LookUps:
        """Return the look-ups of this poll, which include only some targets if `forEach` or objects have many."""
        self.object_targets.follow(plan.object_targets)
        in_turn = self.due_targets.choose() | self.object_targets.choose()
        return replace(plan.look_ups, targets=plan.look_ups.targets | in_turn)

    def _follow(self) -> None:
        """Publish that another process leads, and forget what it will change and what was asked before."""
        self.effects.stand_down()
        self.gatherer.forget()
        self.memories.forget()
        self.decisions.forget()
        self._log.forget()
        self.latest.publish(Publication(leader=self.leadership.holder()))
        # Failures from the time when this process led are now the concern of the new leader.
        self.report_poll(())

    def _sleep(self, stop: threading.Event, until: float) -> None:
        """Wait for the next poll: until its time, or for a second after a change."""
        while not stop.is_set():
            left = until - self.clock.monotonic()
            if left <= 0:
                return
            # Each wait takes only a part of the time, so that a stop is noticed as well.
            if self.wake.wait(min(left, _STOP_NOTICED_SECONDS)):
                stop.wait(min(COLLECT_SECONDS, max(0.0, until - self.clock.monotonic())))
                self.wake.clear()
                return


def _valid_seconds(configuration: Configuration) -> float:
    """Return for how many seconds a poll is valid: `staleAfter`, but at least until the next poll must have ended."""
    return max(configuration.stale_after_seconds, configuration.poll_interval_seconds + 2 * GATHER_SECONDS)


LEAST_SECONDS_APART: Final = 1.0
"""The minimum time from the decisions of one poll to the next poll, whatever time the decisions request."""
LATER_SECONDS: Final = 0.01
"""The time that is added to requested times: clocks differ by some milliseconds, and a decision that is made too soon
must be repeated."""


def next_decision_at(decided: Iterable[Decided]) -> float:
    """Return when the next decision is due, in Unix seconds; infinite if none is requested."""
    asked = (decision.decide_again for each in decided for decision in each.decisions)
    return min((time for time in asked if time is not None), default=math.inf)


def seconds_to_next_poll(interval_left: float, asked_left: float, since_decided: float) -> float:
    """Return the seconds to the end of the interval, or to the requested time if that is earlier.

    `since_decided` is the number of seconds since the last decisions; the next poll is at least `LEAST_SECONDS_APART`
    after them. A requested time can be in the past, or infinite; it can only bring a poll forward.
    """
    return max(min(interval_left, asked_left + LATER_SECONDS), LEAST_SECONDS_APART - since_decided, 0.0)
