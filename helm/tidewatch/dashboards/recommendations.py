"""The dashboard of `tidewatch-recommender run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.models import units

from helm.tidewatch.dashboards.annotations import reloads, scale_calls
from helm.tidewatch.dashboards.cluster_sizes import cluster_sizes, containers
from helm.tidewatch.dashboards.panels import Row, chart, counts, entry_of, link, stat, states
from helm.tidewatch.dashboards.panels import dashboard as dashboard_of
from helm.tidewatch.dashboards.queries import (
    CHOSEN,
    SCRAPED,
    STATUS,
    TARGET,
    age,
    count,
    gauge,
    increase,
    quantiles,
    query,
    rate,
    worst_status,
)
from helm.tidewatch.dashboards.variables import PAGE, address, choices

if TYPE_CHECKING:
    from grafana_foundation_sdk.models import dashboard as models

_NAME: Final = "{{target_namespace}}/{{target_name}}"
_CALLS: Final = "tidewatch_scale_calls_total"
STATUS_NAMES: Final = {0: ("ok", "green"), 1: ("held", "yellow"), 2: ("stale", "orange"), 3: ("error", "red")}
"""Names and colours by the numbers of `worst_status`."""
BINDING_NAMES: Final = {1: ("decides", "blue")}


def dashboard() -> models.Dashboard:
    """Return the dashboard's model."""
    return dashboard_of(
        Dashboard("Tidewatch / Recommendations")
        .uid("tidewatch-recommendations")
        .description("Recommended and actual sizes, the reasons, and how they are carried out.")
        .link(link("Page of the recommender", "${page:raw}/")),
        (
            choices("namespace", "tidewatch_leader"),
            choices("job", "tidewatch_leader"),
            choices("recommendation", STATUS),
            address("page", "Page of the recommender", PAGE),
        ),
        (*scale_calls(CHOSEN), reloads("recommender", SCRAPED)),
        (_now(), _reasons(), _sizes(), _scaling(), cluster_sizes(), containers(), _process()),
    )


def _now() -> Row:
    every = f"{STATUS}{{{CHOSEN}}}"
    stamps = f"tidewatch_recommendation_timestamp_seconds{{{CHOSEN}}}"
    refused, failed = (
        query(f'sum(increase({_CALLS}{{{CHOSEN},result="{result}"}}[15m]))') for result in ("refused", "error")
    )
    return Row(
        "Now",
        (
            stat(
                "Without a value",
                "Recommendations, or targets of them, that are stale or have an error. Their targets keep their size.",
                count(f'{STATUS}{{{CHOSEN},status=~"stale|error"}} == 1', every),
                (1, "red"),
                alert="TidewatchRecommendationStale",
            ).data_links([link("Page of the recommender", "${page:raw}/")]),
            stat(
                "Held",
                "Recommendations, or targets of them, that keep their last value: a pause, a brake or a missing input.",
                count(f'{STATUS}{{{CHOSEN},status="held"}} == 1', every),
                (1, "orange"),
            ).data_links([link("Page of the recommender", "${page:raw}/")]),
            stat(
                "Oldest value",
                "How long ago the oldest value was decided.",
                query(f"time() - min({stamps})"),
                (300, "orange"),
                unit=units.Seconds,
                alert="TidewatchRecommendationStale",
            ),
            stat(
                "Refused scale calls",
                "Scale calls of the last 15 minutes that were not sent because something else owns the target.",
                refused,
                (0.5, "orange"),
                alert="TidewatchScaleRefused",
            )
            .decimals(0)
            .no_value("no scale output"),
            stat(
                "Failed scale calls",
                "Scale calls of the last 15 minutes that failed. They are repeated.",
                failed,
                (0.5, "red"),
                alert="TidewatchScaleCallsFail",
            )
            .decimals(0)
            .no_value("no scale output"),
            stat(
                "Leaders",
                "Replicas that lead. None: nothing is recommended and nothing is scaled.",
                query(f"sum(tidewatch_leader{{{SCRAPED}}})"),
                (1, "green"),
                (2, "orange"),
                below="red",
                alert="TidewatchLeaderLost",
            ),
        ),
    )


def _reasons() -> Row:
    return Row(
        "Status and reasons",
        (
            states(
                "Status",
                "Whether each recommendation can be followed. Without a value (stale, error) targets keep their size.",
                query(worst_status("recommendation", CHOSEN), "{{recommendation}}"),
                STATUS_NAMES,
                alert="TidewatchRecommendationStale",
            ).data_links([entry_of()]),
            states(
                "Binding step",
                "The driver or constraint that decides the size: the last step that changed the value.",
                gauge("tidewatch_recommendation_binding", "recommendation, step", matchers=CHOSEN),
                BINDING_NAMES,
            ).data_links([entry_of()]),
            chart(
                "Steps of the calculation",
                "The value of each driver, and the value after each constraint that changed it.",
                gauge("tidewatch_recommendation_step", "recommendation, step", matchers=CHOSEN),
                unit=units.NoUnit,
            ).data_links([entry_of()]),
        ),
    )


def _sizes() -> Row:
    return Row(
        "Sizes",
        (
            counts(
                "Recommended and actual replicas",
                "The recommended and the actual size of each target.",
                query(f"max by ({TARGET}) (tidewatch_recommended_replicas{{{CHOSEN}}})", f"recommended {_NAME}"),
                query(f"max by ({TARGET}) (tidewatch_target_replicas{{{CHOSEN}}})", f"actual {_NAME}"),
            ).data_links([entry_of()]),
            chart(
                "Age",
                "How long ago each value was decided. A value that is held because an input is missing grows older.",
                age("tidewatch_recommendation_timestamp_seconds", "recommendation", CHOSEN),
                unit=units.Seconds,
                alert="TidewatchRecommendationStale",
            ).data_links([entry_of()]),
        ),
    )


def _scaling() -> Row:
    return Row(
        "Scaling",
        (
            counts(
                "Scale calls",
                "Scale calls, and decisions not to send one, by result.",
                increase(_CALLS, "result", CHOSEN),
                alert="TidewatchScaleCallsFail",
            ),
            counts(
                "Refusals",
                "Scale calls that are not sent because something else owns the target. The page names the owner.",
                increase(_CALLS, "recommendation", f'{CHOSEN},result="refused"'),
                alert="TidewatchScaleRefused",
            ).data_links([entry_of()]),
            counts("Events", "Kubernetes events by result.", increase("tidewatch_recommender_events_total", "result")),
            counts(
                "Writes of memories",
                "Writes of what decisions remember, by result. Without them nothing is scaled.",
                increase("tidewatch_recommender_memory_writes_total", "result"),
            ),
        ),
        is_collapsed=True,
    )


def _process() -> Row:
    return Row(
        "Process",
        (
            states(
                "Leader",
                "Which replica leads. None: nothing is recommended and nothing is scaled.",
                gauge("tidewatch_leader", "instance"),
                {0: ("standby", "text"), 1: ("leads", "green")},
                alert="TidewatchLeaderLost",
            ),
            chart(
                "Polls",
                "Polls by result. In a poll with an error, a recommendation has no value.",
                rate("tidewatch_recommender_polls_total", "result"),
                unit=units.CountsPerSecond,
            ),
            chart(
                "Time since the last poll",
                "How long ago a poll ended.",
                age("tidewatch_recommender_last_poll_timestamp_seconds", "job"),
                unit=units.Seconds,
                alert="TidewatchPollsStopped",
            ),
            chart(
                "Duration of decisions",
                "How long the decision of one recommendation takes.",
                *quantiles("tidewatch_recommender_decision_duration_seconds", "recommendation", CHOSEN),
                unit=units.Seconds,
            ).data_links([entry_of()]),
        ),
        is_collapsed=True,
    )
