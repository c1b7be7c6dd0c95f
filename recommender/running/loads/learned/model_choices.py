"""The results of learning: parameters of the models, and which model is in use for each target."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recommender.kinds.predictive.choice.series_proof import SeriesProof
    from recommender.kinds.predictive.forecast import ForecastTask
    from recommender.kinds.predictive.learning import ModelTrial, SeriesVerdict
    from recommender.kinds.predictive.many_series import SharedFit
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.load_needs import LoadNeed


@dataclass(frozen=True, slots=True)
class Learned:
    """The models that have been learned for one recommendation. They are replaced as a whole."""

    task: ForecastTask
    targets: tuple[Target, ...] = ()
    """The targets that models were tried on, in the order of the series of parameters."""
    trials: Mapping[str, ModelTrial] = field(default_factory=dict)
    """The parameters and the record of each model."""
    shared: Mapping[str, SharedFit] = field(default_factory=dict)
    """The fits that serve all targets, by model, if there are many targets or after a restart; a trial takes
    precedence."""
    verdicts: Mapping[Target, SeriesVerdict] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    """Why a model could not be fitted, by model."""

    def proofs(self, targets: Sequence[Target]) -> tuple[SeriesProof | None, ...]:
        """Return the proofs of targets, in the order of the targets; None for a target without a proof."""
        found = (self.verdicts.get(target) for target in targets)
        return tuple(None if verdict is None else verdict.proof for verdict in found)

    def has(self, model: str) -> bool:
        """Return whether a model has been fitted."""
        return model in self.trials or model in self.shared

    def parameters(self, model: str) -> Any:  # noqa: ANN401 - each model has its own parameters
        """Return the parameters in use of a model that has been fitted."""
        return self.trials[model].parameters if model in self.trials else self.shared[model].parameters


class LearnedModels:
    """The learned models, by recommendation. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._learned: dict[str, tuple[object, Learned]] = {}

    def get(self, need: LoadNeed) -> Learned | None:
        """Return the learned models of a recommendation in its current configuration; None if there are none."""
        with self._lock:
            learned_for, learned = self._learned.get(need.name, (None, None))
        return learned if learned_for == need.learned_for else None

    def put(self, need: LoadNeed, learned: Learned) -> None:
        """Replace the learned models."""
        with self._lock:
            self._learned[need.name] = need.learned_for, learned

    def keep(self, names: set[str]) -> None:
        """Forget all but these recommendations."""
        with self._lock:
            self._learned = {name: each for name, each in self._learned.items() if name in names}
