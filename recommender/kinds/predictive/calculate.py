"""The calculation of a predictive recommendation: from the load with its forecast to a size with its steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Observed, Unknown
from recommender.decisions.calculation import Calculation, InputMissingError
from recommender.decisions.replicas import Replicas
from recommender.decisions.texts.times import check_age, oldest_time
from recommender.kinds.predictive.policy.free_slots import with_full_ones
from recommender.kinds.predictive.policy.load_situation import LoadForecast, LoadSituation
from recommender.kinds.predictive.policy.memory import restore_memory
from recommender.kinds.predictive.policy.overrides_and_schedules import active_override, scheduled_bound
from recommender.kinds.predictive.policy.sizing import size_of

if TYPE_CHECKING:
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.inputs import Inputs, TargetState
    from recommender.decisions.loads.load_inputs import LoadInput, PodConnections
    from recommender.decisions.memory import Memory
    from recommender.decisions.record import TargetReference
    from recommender.kinds.predictive.policy.sizing import Sized
    from recommender.kinds.predictive.predictive_settings import PredictiveSettings

_INTERVAL_SECONDS = 10.0
_NOT_ASKED = Unknown("its load has not been queried yet")
_WITHOUT_SERIES = Unknown("the query has no series for this target any more")


def calculate_predictive(
    settings: PredictiveSettings,
    name: str,
    target: TargetReference | None = None,
    targets: tuple[TargetReference, ...] = (),
    stale_after_seconds: float = 60.0,
    *,
    writes_sizes: bool = False,
) -> Calculate:
    """Return the calculation of a recommendation, or, with `forEach`, of one of its targets.

    Until an earlier decision is remembered, the current size of `targets` is used; with `writes_sizes`, also after a
    gap in decisions, and no decision counts as an earlier one until that size has been looked up. The inputs have the
    sizes of the targets that are decided together. Inputs older than `stale_after_seconds` count as unknown. Sizes of
    targets that something else owns are not written.
    """
    own = targets if target is None else (target,)
    return _Predicting(settings, name, target, own, stale_after_seconds, writes_sizes).calculate


@dataclass(frozen=True, slots=True)
class _Predicting:
    settings: PredictiveSettings
    name: str
    target: TargetReference | None
    targets: tuple[TargetReference, ...]
    stale_after_seconds: float
    writes_sizes: bool

    def calculate(self, inputs: Inputs, memory: Memory, now: float) -> Calculation:
        """Return the size with its steps; raises InputMissingError or CalculationError."""
        observed = self._load(inputs)
        if isinstance(observed, Unknown):
            return self._without_load(observed, inputs, memory, now)
        confirmed = oldest_time((observed.time, self._gate_time(inputs, observed.time)), now)
        problem = check_age("an input is", confirmed, now, self.stale_after_seconds)
        if problem:
            return self._without_load(Unknown(problem), inputs, memory, now)
        load = observed.value
        sized = size_of(self.settings, self._situation(load, inputs, memory), restore_memory(memory.own), now)
        if sized.replicas is None:
            raise self._missing_input_error(sized.hold, inputs)
        prediction = load.prediction
        seen = {"load": prediction.load.now}
        if prediction.load.predicted is not None:
            seen["predicted"] = prediction.load.predicted
        calculation = self._calculation(sized, sized.replicas, confirmed)
        return replace(calculation, inputs=seen, details=prediction)

    def _load(self, inputs: Inputs) -> Observed[LoadInput] | Unknown:
        loads = inputs.loads.get(self.name, _NOT_ASKED)
        return loads if isinstance(loads, Unknown) else loads.get(self.target, _WITHOUT_SERIES)

    def _without_load(self, unknown: Unknown, inputs: Inputs, memory: Memory, now: float) -> Calculation:
        """Return the size of an active override or schedule, which need no load.

        Raises InputMissingError if there is neither, or if the schedule requests less than the last or current size:
        how much of that is still needed is unknown.
        """
        missing = InputMissingError(unknown.reason, is_refused=unknown.is_refused)
        override, scheduled = active_override(self.settings, now), scheduled_bound(self.settings.schedules, now)
        if override is None and scheduled is None:
            raise missing
        current, last = self._current(inputs), _last(memory)
        situation = LoadSituation(
            load=None,
            current_replicas=current,
            uid=self._uid(inputs),
            is_absent=self._is_absent(inputs),
            writes_size=self._writes(inputs),
            last_replicas=last,
            # How often sizes are decided is not known without the load, but `staleAfter` is several poll intervals.
            interval_seconds=max(_INTERVAL_SECONDS, self.stale_after_seconds / 2),
        )
        sized = size_of(self.settings, situation, restore_memory(memory.own), now)
        largest = max(current or 0, last or 0)
        is_scheduled = scheduled is not None and sized.replicas == scheduled.replicas >= largest
        if sized.replicas is None or not (override or is_scheduled):
            raise missing
        calculation = self._calculation(replace(sized, hold=""), sized.replicas, now)
        return replace(calculation, note=f"its load is not used: {unknown.reason}")

    def _missing_input_error(self, hold: str, inputs: Inputs) -> InputMissingError:
        """Return the error that explains why there is no size, including a failure of the `freezeUnless` query."""
        query = self.settings.freeze_unless
        gate = inputs.queries.get(query) if query is not None else None
        if not isinstance(gate, Unknown):
            return InputMissingError(hold)
        return InputMissingError(f"{hold}: {gate.reason}", is_refused=gate.is_refused)

    @staticmethod
    def _calculation(sized: Sized, replicas: int, confirmed: float) -> Calculation:
        return Calculation(
            Replicas(replicas),
            confirmed=confirmed,
            own=sized.memory,
            steps=sized.steps,
            binding=sized.binding,
            note=sized.note,
            hold=sized.hold,
            begins_at=sized.begins_at,
        )

    def _situation(self, load: LoadInput, inputs: Inputs, memory: Memory) -> LoadSituation:
        return LoadSituation(
            load=load.prediction.load.now,
            forecast=_forecast(load),
            pods=self._pods(load, memory),
            gate=self._gate(inputs),
            current_replicas=self._current(inputs),
            uid=self._uid(inputs),
            is_absent=self._is_absent(inputs),
            writes_size=self._writes(inputs),
            last_replicas=_last(memory),
            delays=load.delays,
            interval_seconds=_INTERVAL_SECONDS if load.delays is None else load.delays.refresh.seconds,
        )

    def _pods(self, load: LoadInput, memory: Memory) -> tuple[PodConnections, ...] | None:
        if load.pods is None or self.settings.connections is None:
            return load.pods
        closed = {name for name, _ in restore_memory(memory.own).sessions.closed_pods}
        return with_full_ones(load.pods, closed, self.settings.connections.limit)

    def _gate(self, inputs: Inputs) -> float | None:
        """Return the value of `freezeUnless`; None if there is none."""
        query = self.settings.freeze_unless
        found = inputs.queries.get(query) if query is not None else None
        return found.value if isinstance(found, Observed) else None

    def _gate_time(self, inputs: Inputs, otherwise: float) -> float:
        """Return when `freezeUnless` was observed, or `otherwise` if it was not."""
        query = self.settings.freeze_unless
        found = inputs.queries.get(query) if query is not None else None
        return found.time if isinstance(found, Observed) else otherwise

    def _current(self, inputs: Inputs) -> int | None:
        """Return the current size; for several targets, the largest; None if it is not known.

        A size that may be that of another owner does not count as known, if sizes are written.
        """
        states = self._states(inputs)
        if self.writes_sizes and any(state.is_owned is None for state in states):
            return None
        return max((state.replicas for state in states), default=None)

    def _writes(self, inputs: Inputs) -> bool:
        """Return whether the size is written to a target; nothing is if something else owns each of them."""
        states = self._states(inputs)
        return self.writes_sizes and not (states and all(state.is_owned for state in states))

    def _uid(self, inputs: Inputs) -> str:
        """Return the UID of the target; empty if it is not known, or if several targets are decided together."""
        uids = [state.uid for state in self._states(inputs)]
        return uids[0] if len(uids) == 1 else ""

    def _states(self, inputs: Inputs) -> list[TargetState]:
        """Return the known states of the targets that exist."""
        states = [inputs.targets.get(target) for target in self.targets]
        return [each.value for each in states if isinstance(each, Observed) and each.value is not None]

    def _is_absent(self, inputs: Inputs) -> bool:
        """Return whether it is certain that none of the targets that are decided together exists."""
        states = [inputs.targets[target] for target in self.targets if target in inputs.targets]
        return bool(states) and all(isinstance(each, Observed) and each.value is None for each in states)


def _forecast(load: LoadInput) -> LoadForecast | None:
    predicted = load.prediction.load
    if predicted.predicted is None:
        return None
    median = predicted.quantiles.get("0.5", predicted.predicted)
    # The size has a step of its own for `maxGrowth`, which always allows a replica.
    before = load.prediction.before_growth_limit
    upper = predicted.predicted if before is None else before
    return LoadForecast(median, upper, load.prediction.model, load.prediction.bound, limited=predicted.predicted)


def _last(memory: Memory) -> int | None:
    return None if memory.last is None else memory.last.replicas
