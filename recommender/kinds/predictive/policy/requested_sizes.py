"""The size that the forecast, the observed load and the free slots request."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.reports.counts import agreeing, count_of
from recommender.decisions.limits import SizeTrail
from recommender.decisions.record import Step
from recommender.kinds.predictive.policy.arithmetic import MOST_REPLICAS, known_value, replicas_for
from recommender.kinds.predictive.policy.free_slots import count_slots, pods_for
from recommender.kinds.predictive.predictive_settings import ModelName

if TYPE_CHECKING:
    from recommender.kinds.predictive.policy.free_slots import Slots
    from recommender.kinds.predictive.policy.load_situation import LoadSituation
    from recommender.kinds.predictive.predictive_settings import PredictiveSettings


def desired_size(settings: PredictiveSettings, situation: LoadSituation, load: float, per_replica: float) -> SizeTrail:
    """Return the size that is requested now, regardless of earlier sizes."""
    reserve = load * reserve_ratio(settings)
    upper, trail = _from_load(settings, situation, load, reserve, per_replica)
    slots = _slots(settings, situation)
    if slots is not None and settings.connections is not None:
        arrivals = upper - load
        detail = (
            f"{slots.free:.6g} free slots on ready pods for {max(0.0, arrivals) + reserve:.6g} connections, "
            f"{slots.full} full and {slots.without_sample} unknown of {count_of(slots.occupied, 'pod')}"
        )
        trail.raise_to("connections", pods_for(slots, settings.connections.limit, arrivals, reserve), detail)
    _overshoot(settings, slots, trail)
    return trail


def reserve_ratio(settings: PredictiveSettings) -> float:
    """Return the ratio by which the least capacity exceeds the observed load.

    It is `headroom` with `scaleDown` or `connections`. Without these keys, only the model decides.
    """
    return 0.0 if settings.scale_down is None and settings.connections is None else settings.headroom_ratio


def _from_load(
    settings: PredictiveSettings, situation: LoadSituation, load: float, reserve: float, per_replica: float
) -> tuple[float, SizeTrail]:
    """Return the upper forecast after the growth cap, and the larger of the sizes for it and for the observed load."""
    model, upper, horizon = _forecast(settings, situation, load)
    bound = situation.forecast.bound if situation.forecast is not None else None
    said = upper if bound is None else bound.forecast
    detail = f"ceil({said:.10g} / {per_replica:.10g})"
    forecast = Step(f"{model}/forecast", replicas_for(said, per_replica), f"{detail}, {horizon}" if horizon else detail)
    steps = [forecast]
    if bound is not None:
        why = f"at most {bound.ratio:.6g} times {bound.largest:.10g}, the largest load of the history"
        if upper > bound.ratio * bound.largest:
            why = f"at most the load {load:.10g} with its headroom"
        steps.append(Step("bound", replicas_for(upper, per_replica), why))
    limited = None if situation.forecast is None else situation.forecast.limited
    highest = _highest_growth(settings.growth_limit(model), load, limited, per_replica)
    if highest is not None and upper > highest.amount:
        upper = highest.amount
        if (capped := replicas_for(upper, per_replica)) != steps[-1].value:
            steps.append(Step("maxGrowth", capped, highest.detail))
    ahead = steps[-1]
    name = "reserve/load" if reserve else "reactive/load"
    observed = Step(
        name, replicas_for(load + reserve, per_replica), f"ceil({load + reserve:.10g} / {per_replica:.10g})"
    )
    largest = ahead if ahead.value >= observed.value else observed
    value = int(largest.value)
    steps += (observed, Step("largest", value, f"forecast {ahead.value:.0f}, load {observed.value:.0f}"))
    return upper, SizeTrail(value, largest.step, steps)


def _forecast(settings: PredictiveSettings, situation: LoadSituation, load: float) -> tuple[str, float, str]:
    """Return the model, its upper forecast, and the purpose of the forecast."""
    forecast = situation.forecast
    upper = None if forecast is None else known_value(forecast.upper)
    if forecast is None or upper is None:
        return ModelName.HEADROOM.value, load * (1 + settings.headroom_ratio), ""
    startup, delays = settings.horizon_seconds, situation.delays
    if startup is None:
        return forecast.model, upper, ""
    if delays is None:
        return forecast.model, upper, f"in {startup:.6g} s"
    return forecast.model, upper, f"in {startup + delays.total_seconds:.6g} s: start-up {startup:.6g} s, {delays}"


@dataclass(frozen=True, slots=True)
class _Growth:
    amount: float
    detail: str


def _highest_growth(growth: float | None, load: float, limited: float | None, per_replica: float) -> _Growth | None:
    """Return the largest forecast that a growth permits; None without a limit.

    The size is for no less than the published forecast, `limited`, which a single quiet sample hardly lowers.
    """
    if growth is None:
        return None
    amount, detail = load * growth, f"at most {growth:.6g} times the load {load:.10g}"
    if limited is not None and limited > amount:
        amount, detail = limited, f"at most {growth:.6g} times the mean load of the last minutes"
    # From nearly 0, any growth is a large ratio, so one replica is always allowed.
    return _Growth(max(amount, per_replica), detail)


def _slots(settings: PredictiveSettings, situation: LoadSituation) -> Slots | None:
    if settings.connections is None or situation.pods is None:
        return None
    delays = situation.delays.total_seconds if situation.delays is not None else 0.0
    return count_slots(situation.pods, settings.connections.limit, (settings.horizon_seconds or 0.0) + delays)


def _overshoot(settings: PredictiveSettings, slots: Slots | None, trail: SizeTrail) -> None:
    """Request more only while pods are full."""
    if settings.overshoot_ratio is None or slots is None or not slots.full:
        return
    raised = min(MOST_REPLICAS, math.ceil(trail.value * (1 + settings.overshoot_ratio) - 1e-9 * trail.value))
    full = f"{count_of(slots.full, 'pod')} {agreeing(slots.full, 'is', 'are')} full"
    trail.raise_to("overshoot", raised, f"{100 * settings.overshoot_ratio:.6g}% more: {full}")
