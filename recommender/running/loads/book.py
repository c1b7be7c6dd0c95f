"""What has been learned of the models: parameters, and which model is in use for each target."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.predictive.forecast import ForecastTask
    from recommender.running.loads.needs import LoadNeed
    from recommender.running.loads.reading import Target


@dataclass(frozen=True, slots=True)
class ModelInUse:
    """Which model acts for a target, and why."""

    model: str
    reason: str
    headroom_ratio: float | None = None
    """What is added to the load while the model is headroom; None: as configured."""
    shortage_versus_headroom: Mapping[str, float | None] = field(default_factory=dict)
    last_day: str = ""


@dataclass(frozen=True, slots=True)
class Learned:
    """What has been learned for one recommendation. It is replaced as a whole."""

    task: ForecastTask
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """By model."""
    in_use: Mapping[Target, ModelInUse] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    """By model, why its last fit failed."""


class ModelBook:
    """What has been learned, by recommendation. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._learned: dict[str, Learned] = {}

    def get(self, need: LoadNeed) -> Learned | None:
        """Return what has been learned for a recommendation; None if nothing has been."""
        with self._lock:
            return self._learned.get(need.name)

    def put(self, need: LoadNeed, learned: Learned) -> None:
        """Replace what has been learned."""
        with self._lock:
            self._learned[need.name] = learned

    def keep(self, names: set[str]) -> None:
        """Forget all but these recommendations."""
        with self._lock:
            self._learned = {name: each for name, each in self._learned.items() if name in names}
