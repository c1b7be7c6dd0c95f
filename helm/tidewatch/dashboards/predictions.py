"""The dashboard of predictive recommendations."""

from __future__ import annotations

from typing import Any, Final

from helm.tidewatch.dashboards.panels import SCRAPED, Panel, Query, Row, choice, gauge, increase, variable
from helm.tidewatch.dashboards.panels import dashboard as dashboard_of

_CHOSEN: Final = f'{SCRAPED},recommendation=~"$recommendation"'
_TARGET: Final = "recommendation, target_namespace, target_kind, target_name"
_LOAD: Final = "tidewatch_recommender_load"
_CHILD: Final = "tidewatch_recommender_child"
_SHORTAGE: Final = "tidewatch_model_shortage_versus_headroom"
_BUDGET: Final = "tidewatch_forecast_budget_ratio"
_HORIZONS: Final = ("2m", "1m", "3m", "5m", "10m", "15m", "30m", "1h", "2h")


def dashboard() -> dict[str, Any]:
    """Return its model."""
    return dashboard_of(
        "tidewatch-predictions",
        "Tidewatch / Predictions",
        "The predicted load next to the observed load, the model behind it, and the history that it knows.",
        (
            variable("namespace", "tidewatch_leader", "namespace"),
            variable("job", "tidewatch_leader", "job"),
            variable("recommendation", "tidewatch_observed_load", "recommendation"),
            choice("horizon", _HORIZONS),
        ),
        (_load(), _models(), _history(), _fits()),
    )


def _total(metric: str, matchers: str = "", offset: str = "") -> str:
    """Return the sum over all chosen targets; of several replicas, the largest value of each target counts."""
    return f"sum(max by ({_TARGET}) ({metric}{{{_CHOSEN}{matchers}}}{offset}))"


def _load() -> Row:
    predicted = "tidewatch_predicted_load"
    return Row(
        "Load",
        (
            Panel(
                "Predicted and observed load",
                "The load of all chosen targets, and what was expected for the same time: set the horizon to the"
                " start-up time of pods plus the delays of the control loop. Capacity is for the upper quantile.",
                (
                    Query(_total("tidewatch_observed_load"), "observed"),
                    Query(_total(predicted, ',quantile="0.5"', " offset $horizon"), "median"),
                    Query(_total(predicted, ',quantile!="0.5"', " offset $horizon"), "upper quantile"),
                ),
                band=("upper quantile", "median"),
            ),
            Panel(
                "Replicas for the predicted load",
                "The recommended and the actual replicas of all chosen targets that have a forecast.",
                (
                    Query(_of_forecasts("tidewatch_recommended_replicas"), "recommended"),
                    Query(_of_forecasts("tidewatch_target_replicas"), "actual"),
                ),
            ),
        ),
    )


def _of_forecasts(metric: str) -> str:
    return f"sum(max by ({_TARGET}) ({metric}{{{_CHOSEN}}}) and max by ({_TARGET}) (tidewatch_observed_load))"


def _models() -> Row:
    return Row(
        "Models",
        (
            Panel(
                "Shortage against headroom",
                "The recent shortage of each model, divided by that of plain headroom at the same cost. "
                "Below 1 a model does better.",
                (
                    gauge(_SHORTAGE, "recommendation, model", matchers=_CHOSEN),
                    Query("vector(1)", "as plain headroom"),
                ),
            ),
            Panel(
                "Model in use",
                "The model that acts. With many targets, how many of them use each model.",
                (gauge("tidewatch_model_active", "recommendation, model", matchers=_CHOSEN),),
                kind="state-timeline",
                names={1: "in use"},
            ),
            Panel(
                "Cost above the load",
                "Replica-hours of the last week above those that the load filled, and the budget where there is one.",
                (
                    gauge("tidewatch_forecast_cost_ratio", "recommendation", matchers=_CHOSEN),
                    Query(f"max by (recommendation) ({_BUDGET}{{{_CHOSEN}}})", "budget {{recommendation}}"),
                ),
                "percentunit",
            ),
            Panel(
                "Regret",
                "The shortage of the model in use above that of the best one, both divided by that of plain headroom "
                "at the same cost. 0 is the best choice in hindsight.",
                (Query(_regret(), "{{recommendation}}"),),
            ),
            Panel(
                "Bounded forecasts",
                "Forecasts that were cut to `maxOverHistory` times the largest load of the history, by model.",
                (increase("tidewatch_forecast_bounded_total", "recommendation, model", _CHOSEN),),
            ),
        ),
    )


def _regret() -> str:
    """Return PromQL of the shortage of the model in use above the least one; that of plain headroom is 1."""
    shortage, active = f"{_SHORTAGE}{{{_CHOSEN}}}", f"tidewatch_model_active{{{_CHOSEN}"
    in_use = f"{shortage} and on (namespace, job, instance, recommendation, model) {active}}} > 0"
    headroom = f'({active},model="headroom"}} > 0) ^ 0'
    return f"clamp_min(max by (recommendation) ({in_use} or {headroom}) - min by (recommendation) ({shortage}), 0)"


def _history() -> Row:
    seconds, lacking = (
        f"max by (recommendation) ({_LOAD}_history_{name}{{{_CHOSEN}}})" for name in ("seconds", "lacking_seconds")
    )
    return Row(
        "History",
        (
            Panel(
                "Length of the history",
                "Since when the load is known, of the target with the longest history. Models take part once they have "
                "enough of it.",
                (gauge(f"{_LOAD}_history_seconds", "recommendation", matchers=_CHOSEN),),
                "s",
            ),
            Panel(
                "Coverage of the history",
                "The part of the history that has been read from Prometheus.",
                (Query(f"{seconds} / ({seconds} + {lacking})", "{{recommendation}}"),),
                "percentunit",
            ),
            Panel(
                "Downloads",
                "Requests to Prometheus for a piece of the history, by result.",
                (increase(f"{_LOAD}_downloads_total", "result", _CHOSEN),),
            ),
            Panel(
                "Failed downloads",
                "Failed requests for a piece of the history, by recommendation. They are repeated.",
                (increase(f"{_LOAD}_downloads_total", "recommendation", f'{_CHOSEN},result!~"ok|partial"'),),
            ),
        ),
    )


def _fits() -> Row:
    mean = " / ".join(
        f"sum by (name) (rate({_CHILD}_{name}_total{{{SCRAPED}}}[$__rate_interval]))" for name in ("seconds", "runs")
    )
    return Row(
        "Fits",
        (
            Panel(
                "Fits",
                "Trials of models with their fits, by model and result.",
                (increase(f"{_LOAD}_model_trials_total", "model, result", _CHOSEN),),
            ),
            Panel(
                "Duration of fits",
                "How long a child process works for a model, on average.",
                (Query(mean, "{{name}}"),),
                "s",
            ),
            Panel(
                "Targets and series left out",
                "Targets whose load is known, and series of the last answer that belong to no target.",
                (
                    Query(f"max by (recommendation) ({_LOAD}_targets{{{_CHOSEN}}})", "targets {{recommendation}}"),
                    Query(
                        f"max by (recommendation) ({_LOAD}_series_left_out{{{_CHOSEN}}})", "left out {{recommendation}}"
                    ),
                ),
            ),
        ),
    )
