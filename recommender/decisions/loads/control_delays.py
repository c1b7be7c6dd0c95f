"""Determines how much time passes between a change of the load and a change of the size, besides a pod's start-up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LEAST_MEASUREMENTS: Final = 5
"""With fewer measurements, the default is assumed."""
MEASURED_SHARE: Final = 0.9
"""The share of the measurements that do not exceed the delay."""


class DelaySource(StrEnum):
    """Where the length of a delay comes from."""

    MEASURED = "measured"
    """From the recent past of this installation."""
    ASSUMED = "assumed"
    """From the configuration or a default: the delay is not measured, or has too few measurements so far."""


@dataclass(frozen=True, slots=True)
class Delay:
    """One delay and where its length comes from."""

    seconds: float
    source: DelaySource

    def __str__(self) -> str:
        """Return text such as `15 s measured`."""
        return f"{self.seconds:.6g} s {self.source}"


@dataclass(frozen=True, slots=True)
class ControlDelays:
    """The delays between the load and the size."""

    scrape: Delay
    """How old a sample becomes before a query sees a newer one: the time between changes of the load, or the age of its
    samples if that is larger."""
    refresh: Delay
    """The time from one decision to the next, measured as the time between polls, queries included."""
    hpa_sync: Delay
    """The time until an HPA has read the recommendation: its sync period as configured, never measured. 0 without an
    HPA."""

    @property
    def total_seconds(self) -> float:
        """Return the sum of the delays, which come in addition to the start-up of a pod."""
        return self.scrape.seconds + self.refresh.seconds + self.hpa_sync.seconds

    def __str__(self) -> str:
        """Return text such as `scrape 15 s measured, refresh 10 s measured, HPA 15 s assumed`; no HPA part if 0."""
        hpa = f", HPA {self.hpa_sync}" if self.hpa_sync.seconds else ""
        return f"scrape {self.scrape}, refresh {self.refresh}{hpa}"


def delay_of(measured_seconds: Sequence[float], default_seconds: float) -> Delay:
    """Return the delay that nine out of ten measurements do not exceed, or the default with fewer than five of them.

    Measurements that are negative or not finite are ignored: they occur when a clock is set.
    """
    usable = sorted(seconds for seconds in measured_seconds if math.isfinite(seconds) and seconds >= 0)
    if len(usable) < LEAST_MEASUREMENTS:
        return Delay(default_seconds, DelaySource.ASSUMED)
    return Delay(usable[math.ceil(MEASURED_SHARE * len(usable)) - 1], DelaySource.MEASURED)
