"""The load of one compressed day: how many open connections people want at each moment (pure, seeded).

The shape is that of a service that is used by day: one wave from six in the morning to eight in the evening, a quiet
night, noise at all times, and one burst at a time of the afternoon that no forecast can know. At noon of the day that
is shown, the network fails for a moment: a part of the connections is lost at once, and the same people connect again.
A day begins at four in the morning.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

DAY_SECONDS = 140.0
"""The length of a day that has not been shortened."""
BEGINS_HOURS = 4
"""Time of day at which a day begins."""
NIGHT_ENDS, NIGHT_BEGINS = 0.09, 0.67
BURST_BETWEEN = (0.38, 0.52)
BURST_LASTS, BURST_RISES = 0.05, 0.022
BURST_SHARE_OF_PEAK = 0.2
PEAK_VARIES = 0.08
"""The largest deviation of a day's wave from the average height, as a share of that height."""
RECONNECT_AT = 0.333
RECONNECT_SHARE = 0.4
"""The share of the open connections that is lost at once."""
RECONNECT_SECONDS = 3.0
"""The time within which clients reconnect; each waits for a random part of it."""
NOISE_SHARE = 0.03
NOISE_STEPS = 240


@dataclass(frozen=True, slots=True)
class Day:
    """A seeded day: `connections(t)` is the wanted number `t` seconds after its beginning."""

    seconds: float
    """How long the day takes."""
    seed: int
    night: int
    """The number of connections wanted at night."""
    peak: int
    """Connections wanted at the top of the wave, on an average day."""
    burst_at: float = field(init=False)
    """When the burst begins, as a share of the day."""
    height: float = field(init=False)
    """The height of the wave, relative to an average day."""
    noise: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Draw what differs from day to day once: equal seeds make equal days."""
        generator = random.Random(self.seed)
        object.__setattr__(self, "burst_at", generator.uniform(*BURST_BETWEEN))
        object.__setattr__(self, "height", generator.uniform(1 - PEAK_VARIES, 1 + PEAK_VARIES))
        level, noise = 0.0, []
        for _ in range(NOISE_STEPS + 1):
            level = 0.8 * level + generator.gauss(0.0, NOISE_SHARE)
            noise.append(level)
        object.__setattr__(self, "noise", tuple(noise))

    def connections(self, seconds: float) -> int:
        """Return the connections wanted at this moment; before and after the day it is night."""
        share = min(max(seconds / self.seconds, 0.0), 1.0)
        swing = (self.peak - self.night) * self.height
        wanted = self.night + swing * (_wave(share) + BURST_SHARE_OF_PEAK * _burst(share - self.burst_at))
        return max(1, round(wanted * (1 + self._noise_at(share))))

    @property
    def reconnect_at(self) -> float:
        """Return when a part of the connections is lost, in seconds since the beginning of the day."""
        return RECONNECT_AT * self.seconds

    def _noise_at(self, share: float) -> float:
        position = share * NOISE_STEPS
        left = min(int(position), NOISE_STEPS - 1)
        rest = position - left
        return self.noise[left] * (1 - rest) + self.noise[left + 1] * rest


LONGEST_STEP_SECONDS = 0.3
SECONDS_A_ROUND = 1.2
"""The seconds by which each round of the HPA loop lets the day advance; if possible, there is a round every second."""
MOST_SECONDS_AHEAD = 2 * SECONDS_A_ROUND


@dataclass(slots=True)
class DayClock:
    """The time of the day, in seconds since its beginning. It waits for processes that fall behind on a busy machine.

    A step of the clients that took long counts as a short one, and the day advances only by a limited time with each
    round of the HPA loop. So the wave never rises while no round can notice it, and a fleet has equally many rounds to
    follow it on any machine.
    """

    seconds: float = 0.0
    _stepped_at: float | None = None
    _rounds: int = 0
    _ahead: float = MOST_SECONDS_AHEAD
    """Seconds that may pass without another round."""

    def step(self, now: float, rounds: int) -> None:
        """Advance to `now`, in seconds of a monotonic clock; `rounds` is how many rounds the HPA loop has made."""
        self._ahead = min(MOST_SECONDS_AHEAD, self._ahead + (rounds - self._rounds) * SECONDS_A_ROUND)
        self._rounds = rounds
        passed = 0.0 if self._stepped_at is None else now - self._stepped_at
        self._stepped_at = now
        step = min(passed, LONGEST_STEP_SECONDS, self._ahead)
        self._ahead -= step
        self.seconds += step


def day_of(seconds: float, *, seed: int) -> Day:
    """Return a day of this length. A shorter day has a lower peak, so that its wave rises more slowly.

    Pods start no faster in a short day, and the few pods of the night must carry the load until others have started.
    """
    night = 40
    return Day(
        seconds=seconds, seed=seed, night=night, peak=night + round(480 * min(1.0, seconds / DAY_SECONDS) ** 1.3)
    )


def _wave(share: float) -> float:
    if not NIGHT_ENDS < share < NIGHT_BEGINS:
        return 0.0
    return math.sin(math.pi * (share - NIGHT_ENDS) / (NIGHT_BEGINS - NIGHT_ENDS)) ** 2


def _burst(since: float) -> float:
    """Return a trapezoid from 0 to 1 and back; `since` is the share of the day since its beginning."""
    return min(max(since / BURST_RISES, 0.0), 1.0, max((BURST_LASTS + BURST_RISES - since) / BURST_RISES, 0.0))
