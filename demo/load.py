"""The load of one compressed day: how many open connections people want at each moment (pure, seeded).

The shape is that of a service that is used by day: a quiet night, one wave over the day, noise at all times, and one
burst in the afternoon that no forecast can know. At noon the network fails for a moment: a part of the connections
is lost at once, and the same people connect again.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

NIGHT_ENDS, NIGHT_BEGINS = 0.08, 0.76
BURST_AT, BURST_LASTS, BURST_RISES = 0.58, 0.06, 0.025
BURST_SHARE_OF_PEAK = 0.22
RECONNECT_AT = 0.45
RECONNECT_SHARE = 0.4
"""Of the open connections: those that are lost at once."""
RECONNECT_SECONDS = 3.0
"""Within which their clients try again, each after a random part of it."""
NOISE_SHARE = 0.03
NOISE_STEPS = 240


@dataclass(frozen=True, slots=True)
class Day:
    """A seeded day: `connections(t)` is the wanted number `t` seconds after midnight."""

    seconds: float
    """How long the day takes."""
    seed: int
    night: int
    """Connections wanted at night."""
    peak: int
    """Connections wanted at the top of the wave."""
    noise: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Draw the noise once: equal seeds make equal days."""
        generator = random.Random(self.seed)
        level, noise = 0.0, []
        for _ in range(NOISE_STEPS + 1):
            level = 0.8 * level + generator.gauss(0.0, NOISE_SHARE)
            noise.append(level)
        object.__setattr__(self, "noise", tuple(noise))

    def connections(self, seconds: float) -> int:
        """Return the connections wanted at this moment; before and after the day it is night."""
        share = min(max(seconds / self.seconds, 0.0), 1.0)
        swing = self.peak - self.night
        wanted = self.night + swing * (_wave(share) + BURST_SHARE_OF_PEAK * _burst(share))
        return max(1, round(wanted * (1 + self._noise_at(share))))

    @property
    def reconnect_at(self) -> float:
        """Return when a part of the connections is lost, in seconds since midnight."""
        return RECONNECT_AT * self.seconds

    def _noise_at(self, share: float) -> float:
        position = share * NOISE_STEPS
        left = min(int(position), NOISE_STEPS - 1)
        rest = position - left
        return self.noise[left] * (1 - rest) + self.noise[left + 1] * rest


LONGEST_STEP_SECONDS = 0.3
SECONDS_A_ROUND = 1.2
"""How far the day goes on with a round of the HPA loop, which makes one each second where it can."""
MOST_SECONDS_AHEAD = 2 * SECONDS_A_ROUND


@dataclass(slots=True)
class DayClock:
    """The time of the day, in seconds since midnight. It waits for those who fall behind on a busy machine.

    A step of the clients that took long is a short one of the day, and the day goes on only so far with each round of
    the HPA loop. So the wave never rises while nobody could look at it, and a fleet has as many rounds to follow it on
    any machine.
    """

    seconds: float = 0.0
    _stepped_at: float | None = None
    _rounds: int = 0
    _ahead: float = MOST_SECONDS_AHEAD
    """Seconds that may pass without another round."""

    def step(self, now: float, rounds: int) -> None:
        """Advance to `now`, in seconds of a monotonic clock; `rounds` is how many the HPA loop has made."""
        self._ahead = min(MOST_SECONDS_AHEAD, self._ahead + (rounds - self._rounds) * SECONDS_A_ROUND)
        self._rounds = rounds
        passed = 0.0 if self._stepped_at is None else now - self._stepped_at
        self._stepped_at = now
        step = min(passed, LONGEST_STEP_SECONDS, self._ahead)
        self._ahead -= step
        self.seconds += step


def day_of(seconds: float, *, seed: int) -> Day:
    """Return a day of this length. A shorter one has a lower peak, so that its wave rises more slowly.

    Pods start no faster in a short day, and the few of the night must bear the beginning of the wave.
    """
    return Day(seconds=seconds, seed=seed, night=40, peak=40 + round(480 * min(1.0, seconds / 120) ** 1.3))


def _wave(share: float) -> float:
    if not NIGHT_ENDS < share < NIGHT_BEGINS:
        return 0.0
    return math.sin(math.pi * (share - NIGHT_ENDS) / (NIGHT_BEGINS - NIGHT_ENDS)) ** 2


def _burst(share: float) -> float:
    """Return a trapezoid from 0 to 1 and back."""
    since = share - BURST_AT
    return min(max(since / BURST_RISES, 0.0), 1.0, max((BURST_LASTS + BURST_RISES - since) / BURST_RISES, 0.0))
