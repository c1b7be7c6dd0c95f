"""Runs a backtest: replays every policy on the recorded load and compares it with headroom of equal replica-hours."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.objects.durations import format_duration
from recommender.backtest.forecasts_of_all_models import run_models
from recommender.backtest.hpa_actuator import hpa_desired, through_hpa
from recommender.backtest.replayed_policies import HPA, ReplayedPolicy, auto_policy, headroom_policy, model_policy
from recommender.backtest.report import Actuator, BacktestReport, PolicyResult, TraceFacts
from recommender.backtest.shortage_by_budget import BUDGET_RATIOS, Choosing, shortage_by_budget
from recommender.backtest.verdict import regret_of, verdict
from recommender.kinds.predictive.choice.auto import choice_limits, configured_capacity
from recommender.kinds.predictive.choice.blend import room_of
from recommender.kinds.predictive.cycle_length import stretched_fleet, stretched_history, stretched_task
from recommender.kinds.predictive.history import LoadHistory, of_one_series
from recommender.kinds.predictive.simulation.bill import above_load_ratio
from recommender.kinds.predictive.simulation.connections import (
    measure_connections,
    open_connections,
    replayed_decisions,
    simulate_connections,
)
from recommender.kinds.predictive.simulation.frontier import HEADROOM_RATIOS, compare, frontier
from recommender.kinds.predictive.simulation.measures import JudgedLoad, measure
from recommender.kinds.predictive.simulation.scale_down_limits import ScaleDownLimits, scale_down_limits
from recommender.kinds.predictive.simulation.serving import FleetSettings, desired_replicas, largest_of_window, simulate
from recommender.kinds.predictive.simulation.session_option import parse_sessions
from recommender.kinds.predictive.suggested_limit import suggested_max_replicas
from recommender.kinds.predictive.tasks import down_window_seconds, task_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from recommender.backtest.options import BacktestOptions
    from recommender.backtest.recorded.trace_file import RecordedLoad
    from recommender.child_processes.parent import Children
    from recommender.kinds.predictive.arrays import BoolArray, FloatArray
    from recommender.kinds.predictive.forecast import Model
    from recommender.kinds.predictive.simulation.frontier import Act, FrontierPoint
    from recommender.kinds.predictive.simulation.serving import Ask, Fleet

_REPLICAS_AT_99TH_PERCENTILE: Final = 20
_HPA_RATIOS: Final = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.0, 4.0)
"""The headroom ratios of a frontier through an HPA, of which each takes seconds to simulate."""
_FORECASTS_SHARE: Final = {Actuator.SCALE: 0.95, Actuator.HPA: 0.5}
"""The forecasts' share of the work, used only to show progress."""


def with_connections(arrivals: LoadHistory, sessions: str) -> LoadHistory:
    """Return the open connections as load; without `sessions`, return the history unchanged."""
    if not sessions:
        return arrivals
    load = open_connections(arrivals.values[0], arrivals.step_seconds, parse_sessions(sessions, 1.0))
    return of_one_series(arrivals.start_seconds, arrivals.step_seconds, load)


def with_refusals(
    results: Sequence[PolicyResult], arrivals: LoadHistory, judged: BoolArray, fleet: FleetSettings, sessions: str
) -> tuple[PolicyResult, ...]:
    """Return the results with measures of connections; without a limit, a pod takes `load_per_replica` connections."""
    settings = parse_sessions(sessions, fleet.load_per_replica)
    found = []
    for result in results:
        run = simulate_connections(arrivals.values[0], replayed_decisions(np.ceil(result.fleet.asked)), fleet, settings)
        found.append(replace(result, connections=measure_connections(run, judged, fleet)))
    return tuple(found)


def run_backtest(
    trace: RecordedLoad,
    history: LoadHistory,
    options: BacktestOptions,
    models: Sequence[Model],
    children: Children,
    show: Callable[[float, str], None] = lambda _share, _what: None,
) -> BacktestReport:
    """Return the report on one series. `show` is called with the share that is done and the current activity."""
    arrivals, history = history, with_connections(history, options.connections)
    load, fleet = history.values[0], fleet_settings(history, options)
    judged = JudgedLoad(load, np.arange(history.steps) >= warm_up_steps(history, options), fleet)
    task = task_for(
        options.startup_seconds, history.step_seconds, options.settings, down_window_seconds(options.settings)
    )
    share, stretch = _FORECASTS_SHARE[options.actuator], options.settings.stretch
    seen, sought = stretched_history(history, stretch), stretched_task(task, stretch)
    runs = run_models(models, seen, sought, children, lambda done, what: show(share * done, what), stretch)
    forecasts = {run.name: run.forecasts for run in runs.runs}
    choosing = Choosing(seen, forecasts, sought, stretched_fleet(fleet, stretch))
    auto = choosing.run(options.settings.budget_ratio)
    policies = [
        headroom_policy(load, options.settings.headroom_ratio, fleet),
        _hpa(load, fleet, options.actuator),
        *(
            model_policy(run, configured_capacity(run.name, seen, run.forecasts.upper, sought)[0], task, fleet)
            for run in runs.runs
        ),
        auto_policy(auto.capacity, task, fleet),
    ]
    is_scale = options.actuator is Actuator.SCALE
    ratios = HEADROOM_RATIOS if is_scale else _HPA_RATIOS
    limits = scale_down_limits(options.settings, load, fleet)
    steps = len(ratios) + len(policies) + len(BUDGET_RATIOS)
    rest = 1 - share
    act = _Shown(_act(options.actuator, fleet, limits), steps, lambda done, what: show(share + rest * done, what))
    results, points = _simulate(judged, policies, ratios, act, _act(options.actuator, fleet, None))
    budgets = shortage_by_budget(choosing, judged, points, act) if is_scale else ()
    if options.connections:
        results = with_refusals(results, arrivals, judged.steps, fleet, options.connections)
    given = verdict(results, auto.in_use, judged.steps)
    bill = above_load_ratio(judged, results[-1].measures.replica_hours)
    regret = None
    if is_scale and limits is None:
        rooms = {run.name: room_of(load, run.forecasts.upper[0], task.headroom_ratio) for run in runs.runs}
        regret = regret_of(results[-1], rooms, choice_limits(seen, sought)[0], judged, points)
    given = replace(given, cost_above_load_ratio=bill, regret=regret)
    return BacktestReport(
        actuator=options.actuator,
        trace=_trace_facts(trace, history, judged.steps, options.settings.season_seconds),
        fleet_settings=fleet,
        policies=results,
        frontier=points,
        verdict=given,
        budgets=budgets,
        rival=act(desired_replicas(load * (1 + given.comparison.cost_as_headroom_ratio), fleet.load_per_replica)),
        history=history,
        judged=judged.steps,
        notes=(*_notes(trace, history, options, fleet), *runs.notes),
    )


def _trace_facts(trace: RecordedLoad, history: LoadHistory, judged: BoolArray, season_seconds: float) -> TraceFacts:
    return TraceFacts(
        source=trace.source,
        start=history.start_seconds,
        end=history.start_seconds + (history.steps - 1) * history.step_seconds,
        step_seconds=history.step_seconds,
        samples=len(trace.times),
        judged_steps=int((judged & ~np.isnan(history.values[0])).sum()),
        warm_up_seconds=float((~judged).sum() * history.step_seconds),
        season_seconds=season_seconds,
    )


def _notes(trace: RecordedLoad, history: LoadHistory, options: BacktestOptions, fleet: FleetSettings) -> Iterator[str]:
    """Yield what the user should know about the trace and the options."""
    settings = options.settings
    if trace.repeated:
        yield f"rows that share their time with another row count by their mean: {trace.repeated:,}"
    kept = settings.history_seconds
    # `--last 14d` has a step at both ends.
    if history.span_seconds - history.step_seconds > kept:
        yield f"Each forecast uses the {format_duration(kept)} before it, as in `run`: `history` changes it."
    if settings.max_replicas is None:
        # The output `scale` needs it.
        largest = float(np.nanmax(history.values[0]))
        most, needed = (
            suggested_max_replicas(largest, fleet.load_per_replica, ratio, fleet.min_replicas)
            for ratio in (settings.max_over_history, 1.0)
        )
        needs = f"The largest load, {largest:.6g}, needs {needed} replicas"
        times = f"the largest forecast, {settings.max_over_history:g} times as much, needs {most}"
        yield f"{needs}, and {times}, which suits as `maxReplicas` for the output scale."


def fleet_settings(history: LoadHistory, options: BacktestOptions) -> FleetSettings:
    """Return the simulated fleet; without a load per replica, the default is 1/20 of the load's 99th percentile."""
    return FleetSettings(
        step_seconds=history.step_seconds,
        startup_seconds=options.startup_seconds,
        load_per_replica=options.load_per_replica or default_load_per_replica(history.values[0]),
        min_replicas=options.min_replicas,
        max_replicas=options.settings.max_replicas,
        down_window_seconds=down_window_seconds(options.settings),
    )


def default_load_per_replica(load: FloatArray) -> float:
    """Return 1/20 of the known load's 99th percentile, or of its largest value if that is 0; 1 without any load.

    A load so small that this is not a normal number counts as no load: dividing by it would overflow.
    It is the only number of a backtest that depends on the whole trace, and it is only a scale.
    """
    for scale in (float(np.nanpercentile(load, 99)), float(np.nanmax(load))):
        if scale / _REPLICAS_AT_99TH_PERCENTILE >= sys.float_info.min:
            return scale / _REPLICAS_AT_99TH_PERCENTILE
    return 1.0


def warm_up_steps(history: LoadHistory, options: BacktestOptions) -> int:
    """Return how many steps are not judged: the warm-up, but never more than half of the trace."""
    return min(int(options.warm_up_seconds / history.step_seconds + 1e-9), history.steps // 2)


class _Shown:
    """An actuator that reports progress by counting the fleets that it simulates."""

    def __init__(self, act: Act, whole: int, show: Callable[[float, str], None]) -> None:
        self._act = act
        self._whole = whole
        self._show = show
        self._done = 0

    def __call__(self, sizes: FloatArray) -> Fleet:
        self._show(min(1.0, self._done / self._whole), "simulating")
        self._done += 1
        return self._act(sizes)


def _hpa(load: FloatArray, fleet: FleetSettings, actuator: Actuator) -> ReplayedPolicy:
    """Return the policy of an HPA on current load; the HPA actuator does the division and the tolerance itself."""
    if actuator is Actuator.HPA:
        return ReplayedPolicy(HPA, load / fleet.load_per_replica)
    return ReplayedPolicy(HPA, hpa_desired(load, fleet))


def _simulate(
    judged: JudgedLoad, policies: Sequence[ReplayedPolicy], ratios: Sequence[float], act: Act, plain: Act
) -> tuple[tuple[PolicyResult, ...], tuple[FrontierPoint, ...]]:
    """Return the results of the policies, and the frontier simulated through the same actuator."""
    # An HPA on current load does not know the recommendation's rules.
    simulated = [(policy, plain(policy.sizes) if policy.name == HPA else act(policy.sizes)) for policy in policies]
    measured = [(policy, run, measure(judged, run)) for policy, run in simulated]
    most = max(measures.replica_hours for _, _, measures in measured)
    points = frontier(judged, most, act, ratios)
    results = tuple(
        PolicyResult(
            policy.name,
            measures,
            compare(measures, points),
            run,
            policy.predicted,
            policy.parameters,
            policy.fits,
        )
        for policy, run, measures in measured
    )
    return results, points


def _act(actuator: Actuator, fleet: FleetSettings, limits: ScaleDownLimits | None) -> Act:
    """Return the function that simulates the actuator; `limits` are those of `scaleDown` and `connections`."""
    if actuator is Actuator.HPA:
        return lambda sizes: through_hpa(sizes if limits is None else limits.ask(sizes, fleet), fleet)
    ask: Ask = largest_of_window if limits is None else limits.ask
    return lambda sizes: simulate(sizes, fleet, ask)
