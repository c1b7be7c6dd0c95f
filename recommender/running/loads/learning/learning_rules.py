"""The rules of learning, for few targets and for many: how often, how long, which models, and which history."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from recommender.child_processes.child_errors import ChildError
from recommender.kinds.predictive.current_forecast import duration_text, lacks_history
from recommender.kinds.predictive.forecast import no_fit
from recommender.kinds.predictive.history import DAY_SECONDS, LoadHistory
from recommender.kinds.predictive.learning import JudgingTerms
from recommender.kinds.predictive.models.table import MODELS
from recommender.kinds.predictive.predictive_settings import MOST_FITTED_TARGETS, ModelName
from recommender.running.loads.histories.sample_times import index_at
from recommender.running.loads.learned.forecast_tasks import fleet_of
from recommender.running.loads.predictions.predicting import POOLED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.foundation.service.runtime.logs import StateLog
    from adapter.foundation.time.clock import Clock
    from recommender.child_processes.parent import ChildLimits
    from recommender.kinds.predictive.forecast import Model
    from recommender.kinds.predictive.learning import ModelTrial, SeriesVerdict
    from recommender.running.loads.histories.load_histories import TargetHistory
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.learned.model_choices import Learned, LearnedModels
    from recommender.running.loads.load_needs import LoadNeed
    from recommender.running.loads.load_telemetry import LoadTelemetry
    from recommender.running.loads.predictions.delay_measurement import DelayMeter

T = TypeVar("T")
CATCH_UP_SECONDS: Final = 3_600.0
"""The longest time until a model is chosen again."""
_CATCH_UP_EACH_SECONDS: Final = 60.0
"""Time between choices for each recommendation: a choice takes seconds of a core, so choices are made more often if
there are few recommendations."""
_SOONEST_CATCH_UP_SECONDS: Final = 600.0
RETRY_SECONDS: Final = 4 * 3_600.0
"""Time after which a model that could not be fitted is tried again."""
FIT_SECONDS: Final = 60.0
"""Budget of one fit of one series. A trial takes several fits: one for every two days of the record, and one for the
future."""
LONGEST_CHILD_SECONDS: Final = 1_800.0
_YARDSTICKS: Final = frozenset({ModelName.REACTIVE, ModelName.HEADROOM})


class RunChild(Protocol):
    """Runs a function in a child process (`Children.run`). Raises ChildError."""

    def __call__(self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...], limits: ChildLimits) -> Any:  # noqa: ANN401 - what the function returns
        """Return what the function returns."""


@dataclass(frozen=True, slots=True)
class LearningServices:
    """The services that learning uses, for few targets and for many."""

    delays: DelayMeter
    models: LearnedModels
    """The store of learned models."""
    run_child: RunChild
    telemetry: LoadTelemetry
    clock: Clock
    save: Callable[[LoadNeed, Learned], None] = lambda _need, _learned: None
    """Stores the verdicts of a recommendation, so that they outlive the process."""

    def compare_models(
        self, log: StateLog, need: LoadNeed, on: str, what: Callable[..., T], *arguments: object, limits: ChildLimits
    ) -> T | None:
        """Return how a child compares the models of a recommendation; None if it fails.

        `log` has the failure, and `on` says in it which targets were compared; empty for all of them.
        """
        key = f"{need.name} choice"
        try:
            found: T = self.run_child("choice", what, arguments, limits)
        except ChildError as error:
            message = f"recommendation {need.name}: models could not be compared{on}: {error}"
            log.failed(key, message, level=logging.WARNING)
            self.telemetry.count_trial(need.name, "choice", error.outcome)
            return None
        log.recovered(key, f"recommendation {need.name}: models are compared again")
        self.telemetry.count_trial(need.name, "choice", "ok")
        return found


def terms_of(history: TargetHistory, learned: Learned, targets: Sequence[Target]) -> JudgingTerms:
    """Return the terms on which the models are compared on these targets."""
    need, task = history.need, learned.task
    fleet = fleet_of(need, task, history.step_seconds)
    return JudgingTerms(str(need.settings.model), task, fleet, learned.proofs(targets))


def catch_up_seconds(recommendations: int) -> float:
    """Return how often the model in use is chosen again, given the number of predictive recommendations."""
    return min(CATCH_UP_SECONDS, max(_SOONEST_CATCH_UP_SECONDS, _CATCH_UP_EACH_SECONDS * recommendations))


def models_to_try(configured: ModelName, targets: int, known_seconds: float) -> tuple[Model, ...]:
    """Return the configured models that have enough history; with many targets, heavy models must be in `POOLED`."""
    return tuple(
        model
        for model in MODELS
        if model.name not in _YARDSTICKS
        and (configured in {ModelName.AUTO, model.name})
        and not lacks_history(model, known_seconds)
        and (targets <= MOST_FITTED_TARGETS or not model.is_heavy or model.name in POOLED)
    )


def learning_basis(history: TargetHistory) -> object:
    """Return what a recommendation learns from; if that changes, it learns again from the beginning."""
    return history.need.learned_for, history.step_seconds


def known_past(history: TargetHistory, targets: tuple[Target, ...], now: float) -> LoadHistory:
    """Return the samples up to the newest grid time that is certain to be known."""
    return history.history(targets, (index_at(now, history.step_seconds) - 1) * history.step_seconds)


def with_verdicts(
    need: LoadNeed, learned: Learned, trials: Sequence[ModelTrial], verdicts: Sequence[SeriesVerdict]
) -> Learned:
    """Return the learned models with new records, and the verdicts on the targets in their order."""
    by_target = {
        target: _verdict_on_season(verdict, need.settings.season_seconds)
        for target, verdict in zip(learned.targets, verdicts, strict=True)
    }
    return replace(learned, trials={trial.model: trial for trial in trials}, verdicts=by_target)


def without_trial(model: Model, former: Learned) -> str:
    """Return what a model goes on with if it could not be tried again."""
    known = former.has(model.name)
    if model.fit is no_fit:
        return "its last record stays in use" if known else "it has no record until it is tried again"
    return "its last good parameters stay in use" if known else "it takes no part until it is fitted"


def _verdict_on_season(verdict: SeriesVerdict, season_seconds: float) -> SeriesVerdict:
    """Return the verdict with texts that state the length of the models' day, if it differs from a day."""
    if season_seconds == DAY_SECONDS:
        return verdict
    reason = f"{verdict.reason} (a day stands for a season of {duration_text(season_seconds)})"
    # Its replica-hours would be those of a day.
    return replace(verdict, reason=reason, last_day="")
