"""Lets models learn in child processes, one at a time, and decides when each recommendation is due.

Every two days the models of a recommendation are tried on its trailing days and fitted to its whole history. Every ten
minutes, or every hour with many recommendations, their records are continued, and the model in use is chosen again. The
recommendation whose models are oldest is first. `learner_of_many` does the same for recommendations with many targets.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.logs import StateLog
from recommender.child_processes.child_errors import ChildClosedError, ChildError
from recommender.child_processes.parent import ChildLimits
from recommender.kinds.predictive.learning import (
    LEAST_HISTORY_SECONDS,
    ModelTrial,
    caught_up,
    continued_trial,
    trial_of,
)
from recommender.kinds.predictive.many_series import newest_fits
from recommender.kinds.predictive.predictive_settings import MOST_FITTED_TARGETS
from recommender.kinds.predictive.rolling_forecasts import REFIT_SECONDS
from recommender.running.loads.learned.forecast_tasks import is_outgrown, task_of
from recommender.running.loads.learned.model_choices import Learned
from recommender.running.loads.learning.learner_of_many import ManyTargetsLearner
from recommender.running.loads.learning.learning_rules import (
    FIT_SECONDS,
    LONGEST_CHILD_SECONDS,
    RETRY_SECONDS,
    LearningServices,
    catch_up_seconds,
    known_past,
    learning_basis,
    models_to_try,
    terms_of,
    with_verdicts,
    without_trial,
)
from recommender.running.loads.predictions.predicting import FITTED_ALONE, POOLED

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from recommender.kinds.predictive.forecast import ForecastTask, Model
    from recommender.kinds.predictive.history import LoadHistory
    from recommender.running.loads.histories.load_histories import TargetHistory
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.load_needs import LoadNeed

_log = logging.getLogger(__name__)

_LOOP_SECONDS: Final = 2.0
_FITS_A_TRIAL: Final = 5
_STEPS_OF_ONE_RUN: Final = 6
"""The largest number of steps in a single run: the fits, and the turns of 1,000 targets, which take some minutes."""


@dataclass(frozen=True, slots=True)
class _State:
    """States when a recommendation last learned, from which load and for which task."""

    basis: object
    """The load that it learned from; if that changes, it learns again from the beginning."""
    tried: float
    judged: float
    has_problems: bool
    models: tuple[str, ...]
    task: ForecastTask

    @property
    def valid_seconds(self) -> float:
        """How long its trials are valid."""
        return RETRY_SECONDS if self.has_problems else REFIT_SECONDS


class Learner:
    """Fits models and chooses among them. Not thread-safe."""

    def __init__(self, histories: Callable[[], tuple[TargetHistory, ...]], services: LearningServices) -> None:
        self._histories = histories
        self._services = services
        self._states: dict[str, _State] = {}
        self._served: dict[str, float] = {}
        """When each recommendation last learned anything."""
        self._resumed: set[str] = set()
        """The recommendations whose former fits have been made again after a restart, as far as that is possible."""
        self._many = ManyTargetsLearner(services)
        self._rest_seconds = 0.0
        self._log = StateLog(_log)

    def run(self, stop: threading.Event) -> None:
        """Learn until `stop` is set."""
        while not stop.wait(max(_LOOP_SECONDS, self._rest_seconds)):
            self.step()

    def step(self) -> bool:
        """Learn for one recommendation that is due, the one with the oldest models; return whether there was one."""
        histories = {history.need.name: history for history in self._histories()}
        self._served = {name: time for name, time in self._served.items() if name in histories}
        self._states = {name: each for name, each in self._states.items() if name in histories}
        self._many.keep(set(histories))
        self._rest_seconds = 0.0
        self._resumed &= set(histories)
        try:
            # Models that were in use before a restart come first: the trial of one recommendation takes a minute of a
            # core.
            for name, history in histories.items():
                self._supervise(name, partial(self._resume, history))
            names = sorted(histories, key=lambda name: self._served.get(name, -1.0))
            return any(self._supervise(name, partial(self._take_turn, histories[name])) for name in names)
        except ChildClosedError:
            # This process is about to end.
            return False

    def _supervise(self, name: str, work: Callable[[], bool]) -> bool:
        """Return the result of `work` for a recommendation; False if it fails, so that the others go on."""
        try:
            return work()
        except ChildClosedError:
            raise
        except Exception as error:  # noqa: BLE001 - the supervisor: one recommendation must not stop the others
            message = f"recommendation {name}: models cannot be fitted because of an internal error"
            self._log.failed(f"{name} fault", message, problem=f"{type(error).__name__}: {error}")
            return False

    def _take_turn(self, history: TargetHistory) -> bool:
        """Learn what is due for a recommendation, and note that it had its turn; return whether anything was due."""
        name, began = history.need.name, self._services.clock.monotonic()
        if not self._learn_due(history):
            return False
        self._served[name] = self._services.clock.monotonic()
        if self._many.is_settled(name):
            # There is no hurry, and others also need the processor.
            self._rest_seconds = self._served[name] - began
        return True

    def learn_once(self, history: TargetHistory) -> None:
        """Let a recommendation learn for a single decision; with very many targets, only for the largest loads."""
        if len(history.targets()) <= MOST_FITTED_TARGETS:
            self.learn(history)
            return
        for _ in range(_STEPS_OF_ONE_RUN):
            if not self._many.learn_due(history, 1):
                return

    def learn(self, history: TargetHistory) -> None:
        """Try all models of a recommendation, and choose among them."""
        now, need = self._services.clock.wall(), history.need
        task = task_of(need, self._services.delays.delays(need))
        targets = history.targets()
        past = known_past(history, targets, now)
        models = models_to_try(need.settings.model, len(targets), self._known_seconds(history))
        names = tuple(model.name for model in models)
        # This is noted before anything can fail, so that the others have their turn.
        began = self._services.clock.monotonic()
        self._states[need.name] = _State(
            learning_basis(history), began, began, has_problems=True, models=names, task=task
        )
        before = self._with_fits(need, self._services.models.get(need), targets, past, task)
        former = before or Learned(task)
        if (former.targets, former.task) != (targets, task):
            former = Learned(task)
        trials: dict[str, ModelTrial] = {}
        problems: dict[str, str] = {}
        for model in models:
            try:
                trials[model.name] = self._trial_of(need.name, model, past, former)
            except ChildError as error:
                problems[model.name] = str(error)
                if model.name in former.trials:
                    trials[model.name] = former.trials[model.name]
        verdicts = (
            {} if before is None else {each: before.verdicts[each] for each in targets if each in before.verdicts}
        )
        # A fit that was made again after a restart serves until there is a trial.
        shared = {name: fit for name, fit in former.shared.items() if name in problems}
        learned = Learned(task, targets, trials, shared, verdicts, problems)
        ended = self._services.clock.monotonic()
        self._states[need.name] = _State(learning_basis(history), ended, ended, bool(problems), names, task)
        self._judge(history, need, learned, past)

    def _learn_due(self, history: TargetHistory) -> bool:
        """Learn what is due for a recommendation; return whether anything was due."""
        now, state, need = self._services.clock.monotonic(), self._states.get(history.need.name), history.need
        if not self._is_known(history):
            return False
        known = self._known_seconds(history)
        if len(history.targets()) > MOST_FITTED_TARGETS:
            self._states.pop(need.name, None)
            return self._many.learn_due(history, len(self._histories()))
        self._many.forget(need.name)
        if state is None or state.basis != learning_basis(history) or now - state.tried >= state.valid_seconds:
            self.learn(history)
            return True
        if now - state.judged < catch_up_seconds(len(self._histories())):
            return False
        models = tuple(model.name for model in models_to_try(need.settings.model, len(history.targets()), known))
        learned = self._services.models.get(need)
        task = task_of(need, self._services.delays.delays(need))
        step_seconds = history.step_seconds * need.settings.stretch
        if learned is None or set(models) > set(state.models) or is_outgrown(state.task, task, step_seconds):
            self.learn(history)
            return True
        self._states[need.name] = replace(state, judged=now)
        self._judge(history, need, learned, known_past(history, learned.targets, self._services.clock.wall()))
        return True

    def _is_known(self, history: TargetHistory) -> bool:
        """Return whether enough of the load is known to learn from it."""
        return history.is_downloaded and self._known_seconds(history) >= LEAST_HISTORY_SECONDS

    def _known_seconds(self, history: TargetHistory) -> float:
        return float(history.known_seconds(history.targets(), self._services.clock.wall()).max(initial=0.0))

    def _resume(self, history: TargetHistory) -> bool:
        """Repeat once the fits that were in use before a restart; return whether there was anything to do."""
        need, targets = history.need, history.targets()
        if need.name in self._resumed or not self._is_known(history):
            return False
        self._resumed.add(need.name)
        learned = self._services.models.get(need)
        if learned is None or need.name in self._states:
            return False
        if len(targets) > MOST_FITTED_TARGETS:
            return not learned.shared and self._many.learn_due(history, len(self._histories()))
        past = known_past(history, targets, self._services.clock.wall())
        task = task_of(need, self._services.delays.delays(need))
        return self._with_fits(need, learned, targets, past, task) is not learned

    def _with_fits(
        self,
        need: LoadNeed,
        learned: Learned | None,
        targets: tuple[Target, ...],
        past: LoadHistory,
        task: ForecastTask,
    ) -> Learned | None:
        """Return the learned models; after a restart, with fits that are used until the models have been tried."""
        if learned is None or learned.trials or not learned.verdicts:
            return learned
        chosen = {part.model for verdict in learned.verdicts.values() for part in verdict.blend.parts}
        if (learned.targets, learned.task) == (targets, task):
            chosen -= set(learned.shared)
        # Fits for all targets first: they take a second or two, those for each target up to a minute.
        for names in (sorted(chosen & POOLED), sorted(chosen & FITTED_ALONE)):
            limits = ChildLimits(seconds=LONGEST_CHILD_SECONDS)
            try:
                found = self._services.run_child("restart", newest_fits, (names, past, task), limits) if names else {}
            except ChildError as error:
                _log.warning("recommendation %s: %s cannot be fitted anew: %s", need.name, ", ".join(names), error)
                continue
            learned = replace(learned, targets=targets, task=task, shared={**learned.shared, **found})
            self._services.models.put(need, learned)
        return learned

    def _trial_of(self, name: str, model: Model, past: LoadHistory, former: Learned) -> ModelTrial:
        """Return the trial of a model, for the task of what is in use so far (`former`). Raises ChildError."""
        series = 1 if model.name in POOLED else len(past.values)
        seconds = min(LONGEST_CHILD_SECONDS, FIT_SECONDS * _FITS_A_TRIAL * series)
        result, key = "ok", f"{name} {model.name}"
        try:
            found: ModelTrial = self._services.run_child(
                model.name, trial_of, (model.name, past, former.task), ChildLimits(seconds=seconds)
            )
        except ChildClosedError:
            result = ChildClosedError.outcome
            raise
        except ChildError as error:
            result = error.outcome
            message = f"recommendation {name}: {model.name} could not be fitted: {error}"
            self._log.failed(key, f"{message}: {without_trial(model, former)}", level=logging.WARNING)
            raise
        finally:
            self._services.telemetry.count_trial(name, model.name, result)
        self._log.recovered(key, f"recommendation {name}: {model.name} is fitted again")
        return found

    def _judge(self, history: TargetHistory, need: LoadNeed, learned: Learned, past: LoadHistory) -> None:
        """Continue the records, choose the models, and store everything."""
        trials, terms = tuple(learned.trials.values()), terms_of(history, learned, learned.targets)
        limits = ChildLimits(seconds=FIT_SECONDS * (1 + len(learned.targets)))
        found = self._services.compare_models(self._log, need, "", caught_up, terms, past, trials, limits=limits)
        if found is None:
            # The former choice acts on, and the next comparison is one of these trials: without them it would take back
            # what was chosen and proven.
            self._services.models.put(need, learned)
            return
        since, verdicts = found
        whole = [continued_trial(trial, part, past) for trial, part in zip(trials, since, strict=True)]
        learned = with_verdicts(need, learned, whole, verdicts)
        self._services.models.put(need, learned)
        self._services.save(need, learned)
