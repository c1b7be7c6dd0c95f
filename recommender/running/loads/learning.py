"""Lets models learn: who is fitted when, in child processes, one at a time.

Every two days the models of a recommendation are tried on its trailing days and fitted to its whole history. Every ten
minutes, or every hour with many recommendations, their records are continued, and the model in use is chosen again. The
recommendation whose models are oldest is first.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from adapter.foundation.service.runtime.logs import StateLog
from recommender.child_processes.parent import ChildClosedError, ChildError, ChildLimits
from recommender.kinds.predictive.current import lacks_history
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.learning import SeriesVerdict, caught_up, tried
from recommender.kinds.predictive.models.table import MODELS
from recommender.kinds.predictive.predictive_settings import MOST_FITTED_TARGETS, ModelName
from recommender.kinds.predictive.rolling import REFIT_SECONDS
from recommender.running.loads.grid import index_at
from recommender.running.loads.learned_models import Learned
from recommender.running.loads.predicting import POOLED
from recommender.running.loads.tasks import fleet_of, task_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from adapter.foundation.time.clock import Clock
    from recommender.kinds.predictive.forecast import ForecastTask, Model
    from recommender.kinds.predictive.history import LoadHistory
    from recommender.kinds.predictive.learning import ModelTrial
    from recommender.running.loads.delays import DelayMeter
    from recommender.running.loads.histories import TargetHistory
    from recommender.running.loads.learned_models import LearnedModels
    from recommender.running.loads.needs import LoadNeed
    from recommender.running.loads.reading import Target

_log = logging.getLogger(__name__)

_LOOP_SECONDS: Final = 2.0
CATCH_UP_SECONDS: Final = 3_600.0
"""How often a model is chosen again, at least."""
_CATCH_UP_EACH_SECONDS: Final = 60.0
"""A choice takes seconds of a core: with few recommendations they are made so much more often."""
_SOONEST_CATCH_UP_SECONDS: Final = 600.0
RETRY_SECONDS: Final = 4 * 3_600.0
"""After which a model is tried again that could not be fitted."""
LEAST_HISTORY_SECONDS: Final = DAY_SECONDS / 8
"""With less history no model can be compared with another one."""
FIT_SECONDS: Final = 60.0
"""Budget of one fit of one series. A trial takes several: one each two days of the record, and one for the future."""
_FITS_A_TRIAL: Final = 5
_LONGEST_TRIAL_SECONDS: Final = 1_800.0
_YARDSTICKS: Final = frozenset({ModelName.REACTIVE, ModelName.HEADROOM})


def catch_up_seconds(recommendations: int) -> float:
    """Return how often the model in use is chosen again, with so many predictive recommendations."""
    return min(CATCH_UP_SECONDS, max(_SOONEST_CATCH_UP_SECONDS, _CATCH_UP_EACH_SECONDS * recommendations))


class RunChild(Protocol):
    """Runs a function in a child process (`Children.run`). Raises ChildError."""

    def __call__(self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...], limits: ChildLimits) -> Any:  # noqa: ANN401 - what the function returns
        """Return what the function returns."""
        ...


class LearningTelemetry(Protocol):
    """Counts fits."""

    def learned(self, recommendation: str, model: str, result: str) -> None:
        """Count a trial of a model with its fits, by result: `ok`, or what kept it from ending."""
        ...


@dataclass(frozen=True, slots=True)
class _State:
    """When a recommendation learned."""

    basis: object
    """What it learned from; with another one, it learns anew."""
    tried: float
    judged: float
    has_problems: bool
    models: tuple[str, ...]


class Learner:
    """Fits models and chooses among them. For one thread."""

    def __init__(
        self,
        histories: Callable[[], tuple[TargetHistory, ...]],
        delays: DelayMeter,
        book: LearnedModels,
        run_child: RunChild,
        telemetry: LearningTelemetry,
        clock: Clock,
    ) -> None:
        self._histories = histories
        self._delays = delays
        self._book = book
        self._run_child = run_child
        self._telemetry = telemetry
        self._clock = clock
        self._states: dict[str, _State] = {}
        self._log = StateLog(_log)

    def run(self, stop: threading.Event) -> None:
        """Work until the stop."""
        while not stop.wait(_LOOP_SECONDS):
            self.step()

    def step(self) -> bool:
        """Learn for the recommendation whose models are oldest; return whether there was one."""
        histories = {history.need.name: history for history in self._histories()}
        self._states = {name: each for name, each in self._states.items() if name in histories}
        for name in sorted(histories, key=lambda name: self._states[name].tried if name in self._states else -1.0):
            try:
                if self._learn_due(histories[name]):
                    return True
            except ChildClosedError:
                # This process is about to end.
                return False
            except Exception as error:  # noqa: BLE001 - the supervisor: one recommendation must not stop the others
                message = f"recommendation {name}: models cannot be fitted because of an internal error"
                self._log.failed(f"{name} fault", message, problem=f"{type(error).__name__}: {error}")
        return False

    def learn(self, history: TargetHistory) -> None:
        """Try all models of a recommendation, and choose among them."""
        now, need = self._clock.wall(), history.need
        task = task_of(need, self._delays.delays(need))
        targets = learning_targets(history, now)
        past = _past(history, targets, now)
        known = float(history.known_seconds(targets, now).max(initial=0.0))
        models = _models(need.settings.model, len(history.targets()), known)
        names = tuple(model.name for model in models)
        # Before anything can fail, so that the others have their turn.
        began = self._clock.monotonic()
        self._states[need.name] = _State(_basis(history, need), began, began, has_problems=True, models=names)
        before = self._book.get(need)
        kept = dict(before.trials) if before is not None and before.targets == targets and before.task == task else {}
        trials: dict[str, ModelTrial] = {}
        problems: dict[str, str] = {}
        for model in models:
            try:
                trials[model.name] = self._tried(need.name, model, past, task)
            except ChildClosedError:
                raise
            except ChildError as error:
                problems[model.name] = str(error)
                if model.name in kept:
                    trials[model.name] = kept[model.name]
        learned = Learned(task, targets, trials, problems=problems)
        ended = self._clock.monotonic()
        self._states[need.name] = _State(_basis(history, need), ended, ended, bool(problems), names)
        self._judge(history, need, learned, past)

    def _learn_due(self, history: TargetHistory) -> bool:
        """Learn what is due for a recommendation; return whether anything was."""
        now, state, need = self._clock.monotonic(), self._states.get(history.need.name), history.need
        known = float(history.known_seconds(history.targets(), self._clock.wall()).max(initial=0.0))
        if not history.is_downloaded or known < LEAST_HISTORY_SECONDS:
            return False
        if state is None or state.basis != _basis(history, need):
            self.learn(history)
            return True
        age = now - state.tried
        if age >= (RETRY_SECONDS if state.has_problems else REFIT_SECONDS):
            self.learn(history)
            return True
        if now - state.judged < catch_up_seconds(len(self._states)):
            return False
        models = tuple(model.name for model in _models(need.settings.model, len(history.targets()), known))
        learned = self._book.get(need)
        if learned is None or set(models) > set(state.models):
            self.learn(history)
            return True
        self._states[need.name] = replace(state, judged=now)
        self._judge(history, need, learned, _past(history, learned.targets, self._clock.wall()))
        return True

    def _tried(self, name: str, model: Model, past: LoadHistory, task: ForecastTask) -> ModelTrial:
        """Return the trial of a model. Raises ChildError."""
        series = 1 if model.name in POOLED else len(past.values)
        seconds = min(_LONGEST_TRIAL_SECONDS, FIT_SECONDS * _FITS_A_TRIAL * series)
        result, key = "ok", f"{name} {model.name}"
        try:
            found: ModelTrial = self._run_child(
                model.name, tried, (model.name, past, task), ChildLimits(seconds=seconds)
            )
        except ChildClosedError:
            result = ChildClosedError.outcome
            raise
        except ChildError as error:
            result = error.outcome
            message = f"recommendation {name}: {model.name} could not be fitted: {error}"
            self._log.failed(key, f"{message}: its last good parameters stay in use", level=logging.WARNING)
            raise
        finally:
            self._telemetry.learned(name, model.name, result)
        self._log.recovered(key, f"recommendation {name}: {model.name} is fitted again")
        return found

    def _judge(self, history: TargetHistory, need: LoadNeed, learned: Learned, past: LoadHistory) -> None:
        """Continue the records, choose the models, and put all of it into the book."""
        task = learned.task
        fleet = fleet_of(need, task, history.step_seconds)
        arguments = (str(need.settings.model), past, tuple(learned.trials.values()), task, fleet)
        limits = ChildLimits(seconds=FIT_SECONDS * (1 + len(learned.targets)))
        try:
            trials, verdicts = self._run_child("choice", caught_up, arguments, limits)
        except ChildClosedError:
            raise
        except ChildError as error:
            message = f"recommendation {need.name}: models could not be compared: {error}"
            self._log.failed(f"{need.name} choice", message, level=logging.WARNING)
            self._telemetry.learned(need.name, "choice", error.outcome)
            if self._book.get(need) is None:
                self._book.put(need, learned)
            return
        self._log.recovered(f"{need.name} choice", f"recommendation {need.name}: models are compared again")
        self._telemetry.learned(need.name, "choice", "ok")
        by_target = dict(zip(learned.targets, verdicts, strict=True))
        by_model = {trial.model: trial for trial in trials}
        others = _others(need.settings.model, by_target, len(history.targets()))
        self._book.put(need, replace(learned, trials=by_model, verdicts=by_target, others=others))


def _basis(history: TargetHistory, need: LoadNeed) -> object:
    return need.learned_for, history.step_seconds


def learning_targets(history: TargetHistory, now: float) -> tuple[Target, ...]:
    """Return the targets that models are tried on: all of them, or some of all sizes, the largest among them."""
    targets = history.targets()
    if len(targets) <= MOST_FITTED_TARGETS:
        return targets
    last = index_at(now, history.step_seconds)
    with np.errstate(all="ignore"):
        sizes = np.nan_to_num(np.nanmax(history.rows(targets, last - 10, last), axis=1, initial=0.0))
    order = np.argsort(-sizes, kind="stable")
    places = np.linspace(0, len(targets) - 1, MOST_FITTED_TARGETS).astype(np.int64)
    return tuple(targets[order[place]] for place in places)


def _past(history: TargetHistory, targets: tuple[Target, ...], now: float) -> LoadHistory:
    """Return the samples up to the newest grid time that is surely known."""
    return history.history(targets, (index_at(now, history.step_seconds) - 1) * history.step_seconds)


def _models(configured: ModelName, targets: int, known_seconds: float) -> tuple[Model, ...]:
    """Return the models to try: those that have the history they need, and parameters for all targets."""
    return tuple(
        model
        for model in MODELS
        if model.name not in _YARDSTICKS
        and (configured in {ModelName.AUTO, model.name})
        and not lacks_history(model, known_seconds)
        and (targets <= MOST_FITTED_TARGETS or not model.is_heavy or model.name in POOLED)
    )


def _others(configured: ModelName, verdicts: Mapping[Target, SeriesVerdict], targets: int) -> SeriesVerdict | None:
    """Return the verdict on targets that no model was tried on: that of most of the others."""
    if configured is not ModelName.AUTO or targets <= len(verdicts):
        return None
    ((model, count),) = Counter(verdict.model for verdict in verdicts.values()).most_common(1)
    like = [verdict for verdict in verdicts.values() if verdict.model == model]
    middle = sorted(like, key=lambda each: each.blend.headroom_ratio)[len(like) // 2]
    reason = f"auto: as for {count} of the {len(verdicts)} of {targets:,} targets on which models were compared"
    return SeriesVerdict(model, reason, middle.blend)
