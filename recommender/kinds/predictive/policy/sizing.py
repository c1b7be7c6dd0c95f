"""Turns a forecast into a size: the policy's only entry point.

The rules apply in the order of the record's steps. Upwards: `MODEL/forecast`, `maxGrowth`, `reserve/load`, the larger
of forecast and load, `connections`, `overshoot`. Downwards: `window`, then `reconnectHold`, `drain` or `decay`. Then
the rules of people and the calendar: `freezeUnless`, `schedule`, `override`, `min`, and `max`, which overrules all
others, as with an HPA. Pauses and `maxStep` follow elsewhere, as for all kinds of recommendations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from recommender.decisions.calculation import CalculationError
from recommender.decisions.limits import SizeTrail
from recommender.decisions.record import Step
from recommender.kinds.predictive.policy.arithmetic import known_value, replicas_for
from recommender.kinds.predictive.policy.decay import kept_ratio
from recommender.kinds.predictive.policy.overrides_and_schedules import active_override, apply_bounds, freeze_reason
from recommender.kinds.predictive.policy.reconnect import after_observed_load, with_newest
from recommender.kinds.predictive.policy.requested_sizes import desired_size
from recommender.kinds.predictive.policy.sessions import after_watching_pods, session_seconds
from recommender.kinds.predictive.predictive_settings import ScaleDown

if TYPE_CHECKING:
    from recommender.kinds.predictive.policy.load_situation import LoadSituation
    from recommender.kinds.predictive.policy.memory import PolicyMemory
    from recommender.kinds.predictive.predictive_settings import PredictiveSettings

FROZEN: Final = "held"
"""The step of a size that is kept because the load is unknown."""


_LEAST_GAP_SECONDS: Final = 60.0
_GAP_INTERVALS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Sized:
    """A size and the steps that led to it."""

    replicas: int | None
    """The size; None if the last one must be kept but is unknown."""
    steps: tuple[Step, ...]
    binding: str | None
    """The last step that changed the value."""
    memory: PolicyMemory
    note: str = ""
    """A note for the user, although there is a size; empty otherwise."""
    hold: str = ""
    """Why the last size is kept; empty if it is not."""
    begins_at: int | None = None
    """The current size, if the decision begins from it and not from an earlier decision; None otherwise."""


def size_of(settings: PredictiveSettings, situation: LoadSituation, memory: PolicyMemory, now: float) -> Sized:
    """Return the size of one target at one moment. `now` is in Unix seconds.

    Raises CalculationError if the settings lack `loadPerReplica`.
    """
    if settings.load_per_replica is None:
        raise CalculationError("loadPerReplica is missing: write what one replica serves")
    last, reason = _base(situation, memory), freeze_reason(settings, situation)
    # Without an earlier decision, or if that was made in the future by a clock that was ahead, no time counts.
    elapsed = 0.0 if memory.time is None else max(0.0, now - memory.time)
    longest = longest_interval_seconds(situation.interval_seconds)
    # A decision in the future was made by a wrong clock, so nothing shows how long ago it was made.
    is_gap = memory.time is not None and abs(now - memory.time) > longest
    watched_seconds = 0.0 if is_gap else elapsed
    begins = situation.writes_size and (_is_new(situation, memory) or (is_gap and _is_changed(situation)))
    if situation.writes_size and situation.uid:
        memory = replace(memory, uid=situation.uid)
    if is_gap:
        memory = _after_gap(settings.scale_down, memory, now)
    base = last
    if begins:
        memory, base = _from_current_size(settings.scale_down, situation, memory, last, now)
    memory, load = _observe(settings, situation, memory, watched_seconds, now), known_value(situation.load)
    trail: SizeTrail | None
    if reason or load is None:
        trail, hold = _frozen(settings, last if base is None else base, reason, now)
    else:
        trail, hold = desired_size(settings, situation, load, settings.load_per_replica), ""
        memory = _lower(settings.scale_down, trail, load, _Before(memory, base, min(elapsed, longest)), now)
    if trail is None:
        return Sized(None, (), None, replace(memory, time=now, moved_seconds=0.0), hold=hold)
    apply_bounds(settings, trail, now)
    steps, note = tuple(trail.steps), _note(settings, situation)
    memory = _settle(memory, trail.value, now)
    if begins and situation.is_absent:
        memory = replace(memory, capacity=None)
    else:
        # The first decision that knows the current size begins from it.
        memory = replace(memory, is_unread=begins and situation.current_replicas is None)
    return Sized(trail.value, steps, trail.binding, memory, note, hold, situation.current_replicas if begins else None)


def longest_interval_seconds(interval_seconds: float) -> float:
    """Return the longest time between two decisions that is not a gap, such as a restart or an outage.

    It is two intervals or a minute, whichever is longer. In a gap, capacity decays only as much as in that time, since
    it would collapse otherwise, and the window begins anew.
    """
    return max(_LEAST_GAP_SECONDS, _GAP_INTERVALS * interval_seconds)


def _is_new(situation: LoadSituation, memory: PolicyMemory) -> bool:
    """Return whether no size is remembered of the object that is the target now, such as after it was created again."""
    is_another = bool(memory.uid and situation.uid) and memory.uid != situation.uid
    return memory.capacity is None or memory.is_unread or situation.is_absent or is_another


def _is_changed(situation: LoadSituation) -> bool:
    """Return whether the target does not have the last size, or may not have it.

    Without a change, a gap such as a short outage of Prometheus must not hold the size longer than the window does, or
    one in every few minutes would hold it for ever.
    """
    return situation.current_replicas is None or situation.current_replicas != situation.last_replicas


def _base(situation: LoadSituation, memory: PolicyMemory) -> float | None:
    """Return the capacity of the last decision, in replicas before rounding; None if no size is known.

    If a pause or `maxStep` led to a larger size than the policy wanted, the capacity is lowered from that size.
    """
    capacity, last = memory.capacity, situation.last_replicas
    if capacity is not None and (last is None or last <= replicas_for(capacity, 1.0)):
        return capacity
    first = last if last is not None else situation.current_replicas
    return None if first is None else float(first)


def _observe(
    settings: PredictiveSettings, situation: LoadSituation, memory: PolicyMemory, watched_seconds: float, now: float
) -> PolicyMemory:
    """Return the memory after it has seen the load and the connections of this moment."""
    load = known_value(situation.load)
    if settings.connections is not None and load is not None:
        memory = replace(memory, reconnect=after_observed_load(memory.reconnect, settings.connections, load, now))
    # While many connections break at once, their ends do not show how long sessions last.
    if situation.pods is not None and memory.reconnect.held_until is None:
        memory = replace(memory, sessions=after_watching_pods(memory.sessions, situation.pods, watched_seconds))
    return memory


def _frozen(settings: PredictiveSettings, base: float | None, reason: str, now: float) -> tuple[SizeTrail | None, str]:
    """Return the last size, or an override if none is known, with the reason; None if there is neither."""
    if base is not None:
        last = replicas_for(base, 1.0)
        hold = f"{reason}: {last} is kept"
        return SizeTrail(last, FROZEN, (Step(FROZEN, last, hold),)), hold
    override = active_override(settings, now)
    if override is None:
        return None, f"{reason}, and no earlier size is known"
    return SizeTrail(override.replicas, "override", (Step("override", override.replicas, reason),)), ""


def _settle(memory: PolicyMemory, value: int, now: float) -> PolicyMemory:
    """Return the memory after the decision.

    The capacity keeps its fraction as long as it rounds up to the decided size.
    """
    is_own = memory.capacity is not None and replicas_for(memory.capacity, 1.0) == value
    capacity = memory.capacity if is_own else float(value)
    return replace(memory, time=now, capacity=capacity, is_complete=True, moved_seconds=0.0)


def _note(settings: PredictiveSettings, situation: LoadSituation) -> str:
    notes = []
    if situation.forecast is None or known_value(situation.forecast.upper) is None:
        notes.append(
            f"there is no forecast: the load and {100 * settings.headroom_ratio:.6g}% headroom are used instead"
        )
    connections = settings.connections
    if connections is not None and connections.metric is not None and situation.pods is None:
        notes.append("the connections of the pods are unknown: only their sum is used")
    return "; ".join(notes)


_PLAIN: Final = ScaleDown()
_RESUMED_SECONDS: Final = _PLAIN.window_seconds
"""The longest time for which the largest desired size still counts after a gap, so that daily restarts do not keep
renewing a window of a day."""


@dataclass(frozen=True, slots=True)
class _Before:
    """The size before it is lowered."""

    memory: PolicyMemory
    base: float | None
    """The capacity of the last decision, in replicas before rounding; None if there was none."""
    elapsed_seconds: float
    """The part of the time since the last decision that counts."""


def _lower(scale_down: ScaleDown | None, trail: SizeTrail, load: float, before: _Before, now: float) -> PolicyMemory:
    """Keep the size from going down too fast, and return the memory with the new desired size and the new capacity."""
    memory, base, down = before.memory, before.base, scale_down or _PLAIN
    sizes = with_newest(memory.desired_sizes, now, trail.value, now - down.window_seconds)
    trail.raise_to("window", sizes[0][1], f"the largest of the last {down.window_seconds:.6g} s")
    capacity = float(trail.value)
    if base is not None and base > capacity:
        name, kept, reason = _kept_share(scale_down, load, before, now)
        if base * kept > capacity:
            capacity = base * kept
            trail.raise_to(
                name, replicas_for(capacity, 1.0), f"{capacity:.6g} of {base:.6g} replicas are kept: {reason}"
            )
    return replace(memory, desired_sizes=sizes, capacity=capacity)


def _after_gap(scale_down: ScaleDown | None, memory: PolicyMemory, now: float) -> PolicyMemory:
    """Return the memory after a gap in decisions, for which the window of the largest desired size stands still.

    If the clock was set forward in the gap, the window was moved by that time already. If decisions before the gap may
    not be remembered, the window begins anew, because one of them may have confirmed the largest size.
    """
    renewed, gap = _window_start(scale_down, now), math.inf
    if memory.is_complete and memory.time is not None:
        gap = max(0.0, now - memory.time - memory.moved_seconds)
    sizes: list[tuple[float, int]] = []
    for time, replicas in memory.desired_sizes:
        # A time in the future is one of a wrong clock, so nothing shows how long ago it was.
        resumed = renewed if time > now else max(time, min(time + gap, renewed))
        if not sizes or resumed > sizes[-1][0]:
            sizes.append((resumed, replicas))
    return replace(memory, desired_sizes=tuple(sizes))


def _window_start(scale_down: ScaleDown | None, now: float) -> float:
    """Return the time to give a size so that it counts from `now` for as long as a remembered size counts after a gap.

    That is five minutes, or the window if that is less.
    """
    return now - max(0.0, (scale_down or _PLAIN).window_seconds - _RESUMED_SECONDS)


def _from_current_size(
    scale_down: ScaleDown | None, situation: LoadSituation, memory: PolicyMemory, last: float | None, now: float
) -> tuple[PolicyMemory, float | None]:
    """Return the memory and the base of a decision that begins from the current size, as HPAs do after a restart.

    Earlier decisions were made before that size was known, or while there was no target, or before a gap in which
    somebody may have changed the size. The target may have been created again: no larger size is kept than it has.
    Until the size is known, only the published size is lowered, from the `last` capacity. Unless the size decays from
    then on, it is also the first size of the window, as with HPAs.

    Only a size that is written begins so: an HPA that owns the target has a size that other metrics, or its bounds, may
    have made.
    """
    current = situation.current_replicas
    if current is None:
        return memory, None if situation.is_absent else last
    sizes = tuple((time, min(replicas, current)) for time, replicas in memory.desired_sizes)
    if scale_down is None or scale_down.decay_ratio is None:
        begun = _window_start(scale_down, now)
        sizes = ((begun, current), *(each for each in sizes if each[0] > begun))
    return replace(memory, desired_sizes=sizes), float(current)


def _kept_share(scale_down: ScaleDown | None, load: float, before: _Before, now: float) -> tuple[str, float, str]:
    """Return the name of the rule that limits lowering, the share of the capacity that it keeps, and its reason."""
    memory = before.memory
    if memory.reconnect.held_until is not None:
        return "reconnectHold", 1.0, f"mass reconnect, for {memory.reconnect.held_until - now:.0f} s more"
    if scale_down is None:
        return "decay", 0.0, ""
    elapsed = before.elapsed_seconds
    decayed = kept_ratio(scale_down.decay_ratio, None, elapsed)
    drain = _drain_seconds(scale_down, load, memory)
    drained = kept_ratio(scale_down.decay_ratio, drain, elapsed)
    if drain is not None and drained > decayed:
        return "drain", drained, f"sessions last {drain:.6g} s"
    return "decay", decayed, f"{100 * (scale_down.decay_ratio or 0.0):.6g}% in 10 s"


def _drain_seconds(scale_down: ScaleDown, load: float, memory: PolicyMemory) -> float | None:
    """Return how many seconds open sessions last: `drain`, or else the measured time.

    None if no session is open, or if the time is not known.
    """
    if load <= 0:
        return None
    return scale_down.drain_seconds if scale_down.drain_seconds is not None else session_seconds(memory.sessions)
