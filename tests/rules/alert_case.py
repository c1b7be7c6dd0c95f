"""A case of an alert: series, a moment, and whether it fires then."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """Series in promtool's notation, and the minute at which the alert is checked."""

    alert: str
    series: dict[str, str]
    minute: int
    fires: bool
    labels: dict[str, str]

    @property
    def step_minutes(self) -> int:
        """Return the minutes between two samples and between two evaluations; alerts about a day have longer steps."""
        return 10 if self.minute > 1000 else 1


def case(alert: str, series: dict[str, str], minute: int, *, fires: bool, **labels: str) -> Case:
    return Case(alert, series, minute, fires, labels)
