"""Limits on lowering a size: the window's largest wish, the decay, and the hold after a mass reconnect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from recommender.kinds.predictive.policy.arithmetic import replicas_for
from recommender.kinds.predictive.policy.decay import kept_ratio
from recommender.kinds.predictive.policy.recent_largest import with_newest
from recommender.kinds.predictive.policy.sessions import session_seconds
from recommender.kinds.predictive.predictive_settings import ScaleDown

if TYPE_CHECKING:
    from recommender.kinds.predictive.policy.memory import PolicyMemory
    from recommender.kinds.predictive.policy.size_steps import SizeTrail

_PLAIN: Final = ScaleDown()
_RESUMED_SECONDS: Final = _PLAIN.window_seconds
"""The longest time for which the largest wish still counts after a gap, so that daily restarts do not keep renewing a
window of a day."""


@dataclass(frozen=True, slots=True)
class Before:
    """The size before it is lowered."""

    memory: PolicyMemory
    base: float | None
    """The capacity of the last decision, in replicas before rounding; None if there was none."""
    elapsed_seconds: float
    """The part of the time since the last decision that counts."""


def lower(scale_down: ScaleDown | None, trail: SizeTrail, load: float, before: Before, now: float) -> PolicyMemory:
    """Keep the size from going down too fast, and return the memory with the new wish and the new capacity."""
    memory, base, down = before.memory, before.base, scale_down or _PLAIN
    wishes = with_newest(memory.wishes, now, trail.value, now - down.window_seconds)
    trail.raise_to("window", wishes[0][1], f"the largest of the last {down.window_seconds:.6g} s")
    capacity = float(trail.value)
    if base is not None and base > capacity:
        name, kept, reason = _kept_share(scale_down, load, before, now)
        if base * kept > capacity:
            capacity = base * kept
            trail.raise_to(
                name, replicas_for(capacity, 1.0), f"{capacity:.6g} of {base:.6g} replicas are kept: {reason}"
            )
    return replace(memory, wishes=wishes, capacity=capacity)


def after_gap(scale_down: ScaleDown | None, memory: PolicyMemory, now: float) -> PolicyMemory:
    """Return the memory after a gap in decisions: the window of the largest wish begins anew.

    The memory is stored when the size changes, but not each time that a later wish confirms the size. HPAs likewise
    begin with the present size after a restart of their controller.
    """
    window = (scale_down or _PLAIN).window_seconds
    renewed = now - max(0.0, window - _RESUMED_SECONDS)
    if not memory.wishes or memory.wishes[0][0] >= renewed:
        return memory
    later = tuple(each for each in memory.wishes if each[0] > renewed)
    return replace(memory, wishes=((renewed, memory.wishes[0][1]), *later))


def _kept_share(scale_down: ScaleDown | None, load: float, before: Before, now: float) -> tuple[str, float, str]:
    """Return the name of the rule that limits lowering, the share of the capacity that it keeps, and its reason."""
    memory = before.memory
    if memory.reconnect.held_until is not None:
        return "reconnectHold", 1.0, f"mass reconnect, for {memory.reconnect.held_until - now:.0f} s more"
    if scale_down is None:
        return "decay", 0.0, ""
    elapsed = before.elapsed_seconds
    decayed = kept_ratio(scale_down.decay_ratio, None, elapsed)
    drain = drain_seconds(scale_down, load, memory)
    drained = kept_ratio(scale_down.decay_ratio, drain, elapsed)
    if drain is not None and drained > decayed:
        return "drain", drained, f"sessions last {drain:.6g} s"
    return "decay", decayed, f"{100 * (scale_down.decay_ratio or 0.0):.6g}% in 10 s"


def drain_seconds(scale_down: ScaleDown, load: float, memory: PolicyMemory) -> float | None:
    """Return how many seconds open sessions last: `drain`, or else the measured time.

    None if no session is open, or if the time is not known.
    """
    if load <= 0:
        return None
    return scale_down.drain_seconds if scale_down.drain_seconds is not None else session_seconds(memory.sessions)
