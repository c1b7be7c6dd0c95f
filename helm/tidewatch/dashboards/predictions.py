"""The dashboard of predictive recommendations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from helm.tidewatch.dashboards.annotations import reloads, scale_calls
from helm.tidewatch.dashboards.panels import Row, chart, counts, entry_of, limit_line, link, stat, states
from helm.tidewatch.dashboards.panels import dashboard as dashboard_of
from helm.tidewatch.dashboards.queries import CHOSEN, SCRAPED, TARGET, count, gauge, increase, query
from helm.tidewatch.dashboards.variables import PAGE, address, choices, fixed

if TYPE_CHECKING:
    from grafana_foundation_sdk.models import dashboard as models

_LOAD: Final = "tidewatch_recommender_load"
_CHILD: Final = "tidewatch_recommender_child"
_SHORTAGE: Final = "tidewatch_model_shortage_versus_headroom"
_BUDGET: Final = "tidewatch_forecast_budget_ratio"
_COST: Final = "tidewatch_forecast_cost_ratio"
_TRIALS: Final = f"{_LOAD}_model_trials_total"
HORIZONS: Final = ("2m", "1m", "3m", "5m", "10m", "15m", "30m", "1h", "2h")
BAND: Final = (DynamicConfigValue("custom.fillBelowTo", "median"), DynamicConfigValue("custom.fillOpacity", 20))
"""The settings that fill the area between the upper quantile and the median."""


def dashboard() -> models.Dashboard:
    """Return the dashboard's model."""
    return dashboard_of(
        Dashboard("Tidewatch / Predictions")
        .uid("tidewatch-predictions")
        .description(
            "The predicted load next to the observed load, the model behind it, and the history that it knows."
        )
        .link(link("Page of the recommender", "${page:raw}/")),
        (
            choices("namespace", "tidewatch_leader"),
            choices("job", "tidewatch_leader"),
            choices("recommendation", "tidewatch_observed_load"),
            fixed("horizon", HORIZONS),
            address("page", "Page of the recommender", PAGE),
        ),
        (*scale_calls(CHOSEN), reloads("recommender", SCRAPED)),
        (_now(), _load(), _models(), _history(), _fits()),
    )


def _now() -> Row:
    shortage = f'{_SHORTAGE}{{{CHOSEN},model!~"headroom|reactive"}}'
    in_use = f"({shortage} and on (namespace, job, instance, recommendation, model) {_active()})"
    over = f"{_COST}{{{CHOSEN}}} - on (namespace, job, instance, recommendation) {_BUDGET}{{{CHOSEN}}}"
    return Row(
        "Now",
        (
            stat(
                "Forecasts",
                "Recommendations with a forecast that they follow.",
                query(f"count(group by (recommendation) (tidewatch_predicted_load{{{CHOSEN}}}))"),
            ),
            stat(
                "Worse than headroom",
                "Models in use that had a larger shortage lately than plain headroom at the same cost.",
                count(f"{in_use} > 1", _active()),
                (1, "orange"),
                alert="TidewatchForecastWorseThanHeadroom",
            ),
            stat(
                "Largest cost above budget",
                "Replica-hours above the load over the last week, less what `budget` allows; below 0 is within it.",
                query(f"max({over})"),
                (0, "orange"),
                (0.05, "red"),
                unit=units.PercentUnit,
                alert="TidewatchForecastOverBudget",
            ).no_value("no budget"),
            stat(
                "Bounded forecasts",
                "Forecasts of the last hour capped at `maxOverHistory` times the largest load of the history.",
                query(f"sum(increase(tidewatch_forecast_bounded_total{{{CHOSEN}}}[1h])) or 0 * count({_active()})"),
                (0.5, "orange"),
                alert="TidewatchForecastBounded",
            ).decimals(0),
            stat(
                "Least known history",
                "The part of the history that has been read from Prometheus, of the recommendation that knows least.",
                query(f"min({_coverage()})"),
                (0.9, "orange"),
                (0.99, "green"),
                below="red",
                unit=units.PercentUnit,
                alert="TidewatchLoadHistoryMissing",
            ),
            stat(
                "Failed fits",
                "Trials of models of the last day that did not end.",
                query(f'sum(increase({_TRIALS}{{{CHOSEN},result!~"ok|closed"}}[1d])) or 0 * count({_active()})'),
                (0.5, "orange"),
                alert="TidewatchModelFitsFail",
            ).decimals(0),
        ),
    )


def _active() -> str:
    return f"tidewatch_model_active{{{CHOSEN}}} > 0"


def _total(metric: str, matchers: str = "", offset: str = "") -> str:
    """Return the sum over all chosen targets; of several replicas, the largest value of each target counts."""
    return f"sum(max by ({TARGET}) ({metric}{{{CHOSEN}{matchers}}}{offset}))"


def _load() -> Row:
    predicted = "tidewatch_predicted_load"
    return Row(
        "Load",
        (
            chart(
                "Predicted and observed load",
                "The load of all chosen targets, and what was expected for the same time: set the horizon to the"
                " start-up time of pods plus the delays of the control loop. Capacity is for the upper quantile.",
                query(_total("tidewatch_observed_load"), "observed"),
                query(_total(predicted, ',quantile="0.5"', " offset $horizon"), "median"),
                query(_total(predicted, ',quantile!="0.5"', " offset $horizon"), "upper quantile"),
            ).override_by_name("upper quantile", list(BAND)),
            counts(
                "Replicas for the predicted load",
                "The recommended and the actual replicas of all chosen targets that have a forecast.",
                query(_of_forecasts("tidewatch_recommended_replicas"), "recommended"),
                query(_of_forecasts("tidewatch_target_replicas"), "actual"),
            ),
        ),
    )


def _of_forecasts(metric: str) -> str:
    return f"sum(max by ({TARGET}) ({metric}{{{CHOSEN}}}) and max by ({TARGET}) (tidewatch_observed_load))"


def _models() -> Row:
    return Row(
        "Models",
        (
            states(
                "Model in use",
                "The model that acts. With many targets, how many of them use each model.",
                gauge("tidewatch_model_active", "recommendation, model", matchers=CHOSEN),
                {1: ("in use", "blue")},
            ).data_links([entry_of()]),
            limit_line(
                chart(
                    "Shortage against headroom",
                    "The recent shortage of each model, divided by that of plain headroom at the same cost. "
                    "Below 1 a model does better.",
                    gauge(_SHORTAGE, "recommendation, model", matchers=CHOSEN),
                    query("vector(1)", "as plain headroom"),
                    unit=units.NoUnit,
                    alert="TidewatchForecastWorseThanHeadroom",
                ),
                "as plain headroom",
            ).data_links([entry_of()]),
            chart(
                "Regret",
                "The shortage of the model in use above that of the best one, both divided by that of plain headroom "
                "at the same cost. 0 is the best choice in hindsight.",
                query(_regret(), "{{recommendation}}"),
                unit=units.NoUnit,
            ).data_links([entry_of()]),
            chart(
                "Cost above the load",
                "Replica-hours of the last week above those that the load filled, and the budget where there is one.",
                gauge(_COST, "recommendation", matchers=CHOSEN),
                query(f"max by (recommendation) ({_BUDGET}{{{CHOSEN}}})", "budget {{recommendation}}"),
                unit=units.PercentUnit,
                alert="TidewatchForecastOverBudget",
            ).data_links([entry_of()]),
            counts(
                "Forecasts at their bound",
                "Forecasts that were capped at `maxOverHistory` times the largest load of the history, by model.",
                increase("tidewatch_forecast_bounded_total", "recommendation, model", CHOSEN),
                alert="TidewatchForecastBounded",
            ).data_links([entry_of()]),
        ),
    )


def _regret() -> str:
    """Return the PromQL for the shortage of the model in use above the smallest one; that of plain headroom is 1."""
    shortage, active = f"{_SHORTAGE}{{{CHOSEN}}}", f"tidewatch_model_active{{{CHOSEN}"
    in_use = f"{shortage} and on (namespace, job, instance, recommendation, model) {active}}} > 0"
    headroom = f'({active},model="headroom"}} > 0) ^ 0'
    return f"clamp_min(max by (recommendation) ({in_use} or {headroom}) - min by (recommendation) ({shortage}), 0)"


def _coverage() -> str:
    seconds, lacking = (
        f"max by (recommendation) ({_LOAD}_history_{name}{{{CHOSEN}}})" for name in ("seconds", "lacking_seconds")
    )
    return f"{seconds} / ({seconds} + {lacking})"


def _history() -> Row:
    return Row(
        "History",
        (
            chart(
                "Length of the history",
                "Since when the load is known, of the target with the longest history. Models take part once they have "
                "enough of it.",
                gauge(f"{_LOAD}_history_seconds", "recommendation", matchers=CHOSEN),
                unit=units.Seconds,
            ).data_links([entry_of()]),
            chart(
                "Coverage of the history",
                "The part of the history that has been read from Prometheus.",
                query(_coverage(), "{{recommendation}}"),
                unit=units.PercentUnit,
                alert="TidewatchLoadHistoryMissing",
            )
            .max(1)
            .data_links([entry_of()]),
            counts(
                "Downloads",
                "Requests to Prometheus for a piece of the history, by result.",
                increase(f"{_LOAD}_downloads_total", "result", CHOSEN),
            ),
            counts(
                "Failed downloads",
                "Failed requests for a piece of the history, by recommendation. They are repeated.",
                increase(f"{_LOAD}_downloads_total", "recommendation", f'{CHOSEN},result!~"ok|partial"'),
            ).data_links([entry_of()]),
        ),
        is_collapsed=True,
    )


def _fits() -> Row:
    mean = " / ".join(
        f"sum by (name) (rate({_CHILD}_{name}_total{{{SCRAPED}}}[$__rate_interval]))" for name in ("seconds", "runs")
    )
    return Row(
        "Fits",
        (
            counts(
                "Fits",
                "Trials of models with their fits, by model and result.",
                increase(_TRIALS, "model, result", CHOSEN),
                alert="TidewatchModelFitsFail",
            ),
            chart(
                "Duration of fits",
                "How long a child process works for a model, on average.",
                query(mean, "{{name}}"),
                unit=units.Seconds,
            ),
            counts(
                "Targets and series left out",
                "Targets whose load is known, and series of the last answer that belong to no target.",
                query(f"max by (recommendation) ({_LOAD}_targets{{{CHOSEN}}})", "targets {{recommendation}}"),
                query(f"max by (recommendation) ({_LOAD}_series_left_out{{{CHOSEN}}})", "left out {{recommendation}}"),
            ).data_links([entry_of()]),
        ),
        is_collapsed=True,
    )
