"""Lets models learn for recommendations with many targets: fits for all together, and a verdict for each in turn.

Every two days, the models whose fit serves every series are fitted to a sample of the targets, half of which have the
largest loads. Each kind of fit has a child process. From then on, groups of targets have their turns: a child process
replays the last eight and a half days of each target with all models, and returns the verdicts.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.reports.counts import count_of
from adapter.foundation.service.runtime.logs import StateLog
from recommender.child_processes.child_errors import ChildError
from recommender.child_processes.parent import ChildLimits
from recommender.kinds.predictive.many_series import shared_fits, verdicts_by_series
from recommender.kinds.predictive.rolling_forecasts import REFIT_SECONDS
from recommender.running.loads.histories.sample_times import index_at
from recommender.running.loads.learned.forecast_tasks import is_outgrown, task_of
from recommender.running.loads.learned.model_choices import Learned
from recommender.running.loads.learning.learning_rules import (
    FIT_SECONDS,
    LONGEST_CHILD_SECONDS,
    RETRY_SECONDS,
    catch_up_seconds,
    known_past,
    learning_basis,
    models_to_try,
    terms_of,
)
from recommender.running.loads.predictions.predicting import POOLED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.kinds.predictive.forecast import Model
    from recommender.running.loads.histories.load_histories import TargetHistory
    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.learning.learning_rules import LearningServices

_log = logging.getLogger(__name__)

SAMPLED_TARGETS: Final = 100
"""Models are fitted to this many of the targets."""
_JUDGE_SECONDS: Final = 10.0
"""Budget for the turn of one target, in addition to `FIT_SECONDS` for its group. A turn takes a fifth of a second, or
one second if the step is 60 s."""
_TARGETS_AS_ONE: Final = 60
"""This many targets count as one recommendation when the interval between comparisons of models is computed."""


@dataclass(slots=True)
class _Round:
    """The progress of learning for one recommendation."""

    basis: object
    turns: Turns
    models: tuple[str, ...] = ()
    fitted: float | None = None
    has_problems: bool = False


class ManyTargetsLearner:
    """Learns for recommendations with many targets. Not thread-safe."""

    def __init__(self, services: LearningServices) -> None:
        self._services = services
        self._rounds: dict[str, _Round] = {}
        self._log = StateLog(_log)

    def keep(self, names: set[str]) -> None:
        """Forget the turns of all but these recommendations."""
        self._rounds = {name: each for name, each in self._rounds.items() if name in names}

    def forget(self, name: str) -> None:
        """Forget the turns of a recommendation."""
        self._rounds.pop(name, None)

    def is_settled(self, name: str) -> bool:
        """Return whether each target of a recommendation has had a turn: after that, there is no hurry."""
        return name in self._rounds and self._rounds[name].turns.are_all_served

    def learn_due(self, history: TargetHistory, recommendations: int) -> bool:
        """Fit the models of a recommendation, or give some of its targets their turn; return whether either was due."""
        need, now = history.need, self._services.clock.monotonic()
        state = self._rounds.get(need.name)
        if state is None or state.basis != learning_basis(history):
            state = self._rounds[need.name] = _Round(learning_basis(history), Turns())
        if not _is_stale(state, now) and not state.turns.has_due_turn(len(history.targets()), now):
            return False
        loads = _present_loads(history, self._services.clock.wall())
        known = float(history.known_seconds(tuple(loads), self._services.clock.wall()).max(initial=0.0))
        models = models_to_try(need.settings.model, len(loads), known)
        fitted = tuple(model for model in models if model.name in POOLED)
        names = tuple(model.name for model in models)
        if _is_stale(state, now) or set(names) > set(state.models) or self._is_outgrown(history):
            state.models, state.fitted = names, now
            self._fit(history, fitted, state, loads)
            return True
        group = state.turns.next_group(loads, now)
        if group:
            seconds = catch_up_seconds(recommendations + len(loads) // _TARGETS_AS_ONE)
            self._judge(history, state, group, seconds)
        return bool(group)

    def _is_outgrown(self, history: TargetHistory) -> bool:
        """Return whether forecasts must look further ahead than in the task that the models were fitted to."""
        need = history.need
        learned, current = self._services.models.get(need), task_of(need, self._services.delays.delays(need))
        step_seconds = history.step_seconds * need.settings.stretch
        return learned is not None and is_outgrown(learned.task, current, step_seconds)

    def _fit(
        self, history: TargetHistory, models: tuple[Model, ...], state: _Round, loads: Mapping[Target, float]
    ) -> None:
        """Fit the models that serve all targets, and store them one by one."""
        need = history.need
        before, task = self._services.models.get(need), task_of(need, self._services.delays.delays(need))
        learned = Learned(task) if before is None else replace(before, task=task, targets=(), trials={}, problems={})
        past = known_past(history, _sample(loads), self._services.clock.wall())
        self._services.models.put(need, learned)
        # Models that are fitted in the same way share a child, and so a fit.
        for fit in dict.fromkeys(model.fit for model in models):
            names = tuple(model.name for model in models if model.fit is fit)
            result = "ok"
            try:
                arguments = (names, past, task)
                found = self._services.run_child(
                    names[0], shared_fits, arguments, ChildLimits(seconds=LONGEST_CHILD_SECONDS)
                )
                learned = replace(learned, shared={**learned.shared, **found})
            except ChildError as error:
                result = error.outcome
                message = f"recommendation {need.name}: {' and '.join(names)} could not be fitted: {error}"
                self._log.failed(f"{need.name} {names[0]}", message, level=logging.WARNING)
                learned = replace(learned, problems={**learned.problems, **dict.fromkeys(names, str(error))})
            for name in names:
                self._services.telemetry.count_trial(need.name, name, result)
            self._services.models.put(need, learned)
        state.has_problems = bool(learned.problems)

    def _judge(self, history: TargetHistory, state: _Round, group: tuple[Target, ...], seconds: float) -> None:
        """Give a group of targets their turn: compare the models on them; they are due again after `seconds`."""
        need, learned = history.need, self._services.models.get(history.need)
        if learned is None:
            # The configuration of the recommendation has just changed.
            return
        past = known_past(history, group, self._services.clock.wall())
        terms, shared = terms_of(history, learned, group), dict(learned.shared)
        limits = ChildLimits(seconds=min(LONGEST_CHILD_SECONDS, FIT_SECONDS + _JUDGE_SECONDS * len(group)))
        on = f" on {count_of(len(group), 'target')}"
        verdicts = self._services.compare_models(
            self._log, need, on, verdicts_by_series, terms, state.models, shared, past, limits=limits
        )
        if verdicts is None:
            state.turns.record_failure(group, self._services.clock.monotonic())
            return
        now = self._services.clock.monotonic()
        state.turns.record_turn(group, now + seconds)
        found = {target: verdict for target, verdict in zip(group, verdicts, strict=True) if verdict is not None}
        present = set(history.targets())
        kept = {target: verdict for target, verdict in learned.verdicts.items() if target in present}
        learned = replace(learned, verdicts={**kept, **found})
        self._services.models.put(need, learned)
        self._services.save(need, learned)


def _is_stale(state: _Round, now: float) -> bool:
    """Return whether the models of a recommendation must be fitted."""
    return state.fitted is None or now - state.fitted >= (RETRY_SECONDS if state.has_problems else REFIT_SECONDS)


def _present_loads(history: TargetHistory, now: float) -> dict[Target, float]:
    """Return the largest load in the last steps by target; 0 if none is known."""
    targets, last = history.targets(), index_at(now, history.step_seconds)
    with np.errstate(all="ignore"):
        found = np.fmax.reduce(history.rows(targets, last - 10, last), axis=1, initial=0.0)
    return dict(zip(targets, found.tolist(), strict=True))


def _sample(loads: Mapping[Target, float]) -> tuple[Target, ...]:
    """Return the targets that models are fitted to: those with the largest loads, and as many with other loads."""
    ordered = sorted(loads, key=lambda target: -loads[target])
    if len(ordered) <= SAMPLED_TARGETS:
        return tuple(ordered)
    largest, others = ordered[: SAMPLED_TARGETS // 2], ordered[SAMPLED_TARGETS // 2 :]
    places = np.linspace(0, len(others) - 1, SAMPLED_TARGETS - len(largest)).astype(np.int64)
    return (*largest, *(others[place] for place in places))


MOST_AT_ONCE: Final = 200
_SMALLER: Final = 8
"""The size of a failed group is divided by this number."""
FAILED_GROUP_SECONDS: Final = 60.0
"""Time after which the parts of a failed group have their turns."""


class Turns:
    """The turns of the targets of one recommendation. Times are those of a monotonic clock.

    The target that has waited longest comes first, and among those without a turn so far, the one with the largest
    load. A single target may have made a turn fail, so the targets of that turn have their next turns in smaller
    groups, between the turns of other targets.
    """

    def __init__(self) -> None:
        self._due: dict[Target, float] = {}
        self._most: dict[Target, int] = {}
        """For each target whose last turn failed: how many targets may share its next turn."""

    @property
    def are_all_served(self) -> bool:
        """Whether every target that was seen has had a turn."""
        return all(due > -math.inf for due in self._due.values())

    def has_due_turn(self, targets: int, now: float) -> bool:
        """Return whether a turn may be due, with this number of targets; the check costs next to nothing."""
        return targets != len(self._due) or now >= min(self._due.values(), default=math.inf)

    def next_group(self, loads: Mapping[Target, float], now: float) -> tuple[Target, ...]:
        """Return the targets whose turn it is, none if no turn is due; targets without a load are forgotten."""
        self._due = {target: self._due.get(target, -math.inf) for target in loads}
        self._most = {target: most for target, most in self._most.items() if target in loads}
        due = sorted(
            (target for target, time in self._due.items() if time <= now),
            key=lambda target: (self._due[target], -loads[target]),
        )
        if not due:
            return ()
        most = self._most_with(due[0])
        return tuple(target for target in due if self._most_with(target) == most)[:most]

    def record_turn(self, targets: Iterable[Target], next_at: float) -> None:
        """Note that targets have had their turn, and when the next one is due."""
        for target in targets:
            self._due[target] = next_at
            self._most.pop(target, None)

    def record_failure(self, targets: tuple[Target, ...], now: float) -> None:
        """Note that the turn of a group failed; a target that fails alone waits longer for its next turn."""
        seconds = RETRY_SECONDS if len(targets) == 1 else FAILED_GROUP_SECONDS
        for target in targets:
            self._due[target] = now + seconds
            self._most[target] = max(1, len(targets) // _SMALLER)

    def _most_with(self, target: Target) -> int:
        return self._most.get(target, MOST_AT_ONCE)
