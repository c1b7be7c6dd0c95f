"""When each alert fires and when it is silent."""

from __future__ import annotations

from dataclasses import dataclass

from tests.rules.alert_series import (
    BOUNDED,
    BUDGET,
    BUILD,
    COST,
    CREDENTIALS,
    CROWDED,
    FORBIDDEN,
    HEARD,
    HELD_SIZE,
    HOURLY_FAILURES,
    LACKING,
    LEADER,
    LEFT_PODS,
    OTHER_POD,
    POD,
    POLL_INTERVAL,
    POLLED,
    RECOMMENDER_HEARD,
    RECOMMENDER_RELOADED,
    REFUSED,
    RELOADED,
    RULES_FAILING,
    RULES_OK,
    STANDBY,
    STATE_FILE,
    UNMAPPED,
    VALUES_ANSWERED,
    active,
    ages,
    backend_queries,
    basis,
    calls,
    certificate,
    every_minutes,
    exits,
    extender_calls,
    extender_durations,
    nodes,
    queries,
    ratio,
    requests,
    status,
    trials,
    verdicts,
)


@dataclass(frozen=True, slots=True)
class Case:
    """Series in promtool's notation, and the minute at which the alert is checked."""

    alert: str
    series: dict[str, str]
    minute: int
    fires: bool
    labels: dict[str, str]

    @property
    def step_minutes(self) -> int:
        """Return the minutes between two samples and between two evaluations; alerts about a day have longer steps."""
        return 10 if self.minute > 1000 else 1


def case(alert: str, series: dict[str, str], minute: int, *, fires: bool, **labels: str) -> Case:
    return Case(alert, series, minute, fires, labels)


CASES = (
    case("TidewatchAdapterErrors", {VALUES_ANSWERED: "0+900x60", requests("504"): "0+100x60"}, 20, fires=True),
    case("TidewatchAdapterErrors", {VALUES_ANSWERED: "0+900x60", requests("504"): "0+100x60"}, 5, fires=False),
    case("TidewatchAdapterErrors", {VALUES_ANSWERED: "0+990x60", requests("404"): "0+500x60"}, 20, fires=False),
    # All requests of one HPA fail, among the checks of three API servers and the probes of two kubelets.
    case(
        "TidewatchAdapterErrors",
        {
            requests("503"): "0+4x60",
            requests("200"): "0+120x60",
            requests("200", "other"): "0+36x60",
            VALUES_ANSWERED: "0x60",
        },
        20,
        fires=True,
    ),
    # A new replica is not ready yet.
    case("TidewatchAdapterErrors", {VALUES_ANSWERED: "0+4x60", requests("503", "other"): "0+12x60"}, 20, fires=False),
    case("TidewatchAdapterErrors", {VALUES_ANSWERED: "4x60", requests("503"): "7x60"}, 20, fires=False),
    case("TidewatchRuleFailing", {RULES_FAILING: "1x60", RULES_OK: "9x60"}, 15, fires=True),
    case("TidewatchRuleFailing", {RULES_FAILING: "0x60", RULES_OK: "9x60"}, 15, fires=False),
    case("TidewatchRuleFailing", {RULES_FAILING: "1x8 0x60"}, 15, fires=False),
    case(
        "TidewatchRuleFailing",
        {RULES_FAILING: "0x5 9x60", queries("ok"): "0+9x5 45x60", queries("unreachable"): "0x5 0+60x60"},
        40,
        fires=False,
    ),
    case(
        "TidewatchRuleFailing",
        {RULES_FAILING: "0x5 9x10 0x60", queries("ok"): "0+9x5 45x10 45+9x60", queries("timeout"): "0x5 0+9x10 90x60"},
        17,
        fires=False,
    ),
    case(
        "TidewatchRuleFailing",
        {RULES_FAILING: "1x60", queries("ok"): "0+9x60", queries("timeout"): "0+9x60"},
        40,
        fires=True,
    ),
    case(
        "TidewatchRuleFailing",
        {
            RULES_FAILING: "9x60",
            queries("unreachable"): "0+60x60",
            RULES_FAILING.replace(POD, OTHER_POD): "1x60",
            queries("ok", OTHER_POD): "0+9x60",
        },
        40,
        fires=True,
    ),
    case("TidewatchNotScraped", {BUILD: "1x10 stale"}, 20, fires=True),
    case("TidewatchNotScraped", {BUILD: "1x10 stale"}, 12, fires=False),
    case("TidewatchNotScraped", {BUILD: "1x10 stale", BUILD.replace(POD, OTHER_POD): "_x10 1x60"}, 20, fires=False),
    case("TidewatchNotScraped", {BUILD: "1x10 stale", BUILD.replace(POD, OTHER_POD): "_x13 1x60"}, 20, fires=False),
    case("TidewatchNotScraped", {BUILD: "1x60"}, 20, fires=False),
    *(
        case("TidewatchPrometheusNotAnswering", {queries(result, POD, program): "0+60x60"}, 20, fires=True)
        for result in ("unreachable", "timeout", "unauthenticated", "unexpected")
        for program in ("adapter", "recommender")
    ),
    case(
        "TidewatchPrometheusNotAnswering",
        {queries("ok"): "0+9x5 45x60", queries("unreachable"): "0x5 0+60x60"},
        18,
        fires=True,
    ),
    case(
        "TidewatchPrometheusNotAnswering",
        {queries("ok"): "0+9x5 45x60", queries("unreachable"): "0x5 0+60x60"},
        12,
        fires=False,
    ),
    case(
        "TidewatchPrometheusNotAnswering",
        {queries("ok"): "0+1x60", queries("timeout"): "0+60x60"},
        40,
        fires=False,
    ),
    case(
        "TidewatchPrometheusNotAnswering",
        {queries("refused"): "0+1x60", queries("timeout"): "0+60x60"},
        40,
        fires=False,
    ),
    case("TidewatchPrometheusNotAnswering", {queries("ok"): "7x60", queries("timeout"): "7x60"}, 40, fires=False),
    case(
        "TidewatchPrometheusNotAnswering",
        {queries("ok").replace("instant", "clock"): "0+12x60", queries("unexpected"): "0+4x60"},
        20,
        fires=True,
    ),
    case(
        "TidewatchPrometheusNotAnswering",
        {
            queries("timeout"): "0+6x4 30x2 _x60",
            queries("timeout", OTHER_POD): "_x3 1x60",
            queries("ok", OTHER_POD): "_x3 0+9x60",
        },
        12,
        fires=False,
    ),
    case(
        "TidewatchPrometheusNotAnswering",
        {
            queries("ok", POD, "recommender"): "0+9x60",
            queries("unreachable", POD, "recommender"): "0+9x60",
            backend_queries("local", "ok"): "0+9x60",
            backend_queries("fleet", "unreachable"): "0+9x60",
        },
        20,
        fires=True,
        backend="fleet",
    ),
    case(
        "TidewatchPrometheusNotAnswering",
        {
            queries("ok"): "0+9x60",
            queries("unreachable"): "0+9x60",
            backend_queries("fleet", "ok", "adapter"): "0+9x60",
            backend_queries("--prometheus-url", "unreachable", "adapter"): "0+9x60",
        },
        20,
        fires=True,
        backend="--prometheus-url",
    ),
    # Programs that ask every ten minutes, or every half an hour.
    *(
        case(
            "TidewatchPrometheusNotAnswering",
            {queries("ok"): "9x200", queries("unreachable"): every_minutes(apart, 20, 9)},
            95,
            fires=True,
        )
        for apart in (10, 30)
    ),
    case(
        "TidewatchPrometheusNotAnswering",
        {queries("ok"): every_minutes(10, 5, 15), queries("timeout"): every_minutes(30, 10, 4)},
        95,
        fires=False,
    ),
    case(
        "TidewatchPrometheusNotAnswering",
        {queries("ok"): every_minutes(10, 105, 3), queries("timeout"): every_minutes(10, 5, 10)},
        107,
        fires=False,
    ),
    case("TidewatchPrometheusNotAnswering", {queries("timeout"): every_minutes(95, 5, 1)}, 50, fires=False),
    # The leader, which had no answer for an hour, is another one now, which has.
    case(
        "TidewatchPrometheusNotAnswering",
        {queries("timeout"): "0+1x70 70x60", queries("ok", OTHER_POD): "0x70 0+1x60"},
        80,
        fires=False,
    ),
    # A backend that was away for more than an hour is no longer configured.
    case(
        "TidewatchPrometheusNotAnswering",
        {backend_queries("local", "ok"): "0+9x120", backend_queries("fleet", "unreachable"): "0+1x80 stale"},
        90,
        fires=False,
    ),
    case("TidewatchReloadRefused", {RELOADED: "0x60"}, 10, fires=True),
    case("TidewatchReloadRefused", {RECOMMENDER_RELOADED: "0x60"}, 10, fires=True),
    case("TidewatchReloadRefused", {RELOADED: "1x60", RECOMMENDER_RELOADED: "1x60"}, 10, fires=False),
    case("TidewatchWorkerKilled", {exits("adapter"): "0x9 1x60"}, 12, fires=True, signal="SIGSEGV"),
    case("TidewatchWorkerKilled", {exits("recommender"): "0x9 _x2 1x60"}, 14, fires=True, signal="SIGSEGV"),
    case("TidewatchWorkerKilled", {exits("adapter"): "1x60"}, 2, fires=True, signal="SIGSEGV"),
    case("TidewatchWorkerKilled", {exits("adapter"): "1x60"}, 20, fires=False),
    case("TidewatchWorkerKilled", {exits("adapter"): "0x9 1x60"}, 40, fires=False),
    case("TidewatchWorkerKilled", {exits("adapter"): "3x9 0x60"}, 12, fires=False),
    # Prometheus was away for twenty minutes: what it counts after that is not new.
    case("TidewatchWorkerKilled", {exits("adapter"): "1x30 _x20 1x60"}, 53, fires=False),
    case("TidewatchWorkerKilled", {exits("adapter"): "1x30 _x20 2x60"}, 53, fires=True, signal="SIGSEGV"),
    case("TidewatchAnswersOld", ages(57, 59), 20, fires=True),
    case("TidewatchAnswersOld", ages(0, 60), 20, fires=True),
    case("TidewatchAnswersOld", ages(19, 20), 20, fires=False),
    # Whatever nobody asks for more often than every 98 seconds.
    case("TidewatchAnswersOld", ages(0, 50), 20, fires=False),
    case("TidewatchCertificateNearItsEnd", certificate(-84, 6), 70, fires=True),
    case("TidewatchCertificateNearItsEnd", certificate(-30, 60), 70, fires=False),
    case("TidewatchCertificateNearItsEnd", certificate(-0.2, 0.8), 70, fires=False),
    case("TidewatchCertificateNearItsEnd", certificate(-0.8, 0.2), 70, fires=True),
    # A life of two hours, a quarter of an hour before its end.
    case("TidewatchCertificateNearItsEnd", certificate(-4.5 / 72, 1.5 / 72), 15, fires=True),
    case("TidewatchCertificateNearItsEnd", certificate(-4.5 / 72, 1.5 / 72), 5, fires=False),
    case("TidewatchCredentialsRefused", {CREDENTIALS: "1x60"}, 20, fires=True, credentials="CA bundle (/ca.crt)"),
    case("TidewatchCredentialsRefused", {CREDENTIALS: "0x5 1x3 0x60"}, 20, fires=False),
    case("TidewatchWatchSilent", {HEARD: "0x60"}, 20, fires=True, resource="pods"),
    case("TidewatchWatchSilent", {RECOMMENDER_HEARD: "0x60"}, 20, fires=True, resource="nodes"),
    case("TidewatchWatchSilent", {HEARD: "0+60x60"}, 20, fires=False),
    case("TidewatchWatchSilent", {FORBIDDEN: "0+2x60"}, 20, fires=True, resource="pods"),
    case("TidewatchWatchSilent", {FORBIDDEN: "0+2x3 6x60", HEARD: "_x4 240+60x60"}, 20, fires=False),
    case(
        "TidewatchRecommendationStale",
        {status("stale"): "1x60", status("ok"): "0x60"},
        10,
        fires=True,
        recommendation="dns",
        status="stale",
    ),
    case(
        "TidewatchRecommendationStale",
        {status("error"): "1x60"},
        10,
        fires=True,
        recommendation="dns",
        status="error",
    ),
    case("TidewatchRecommendationStale", {status("held"): "1x60", status("stale"): "0x60"}, 10, fires=False),
    case("TidewatchRecommendationStale", {status("stale"): "1x3 0x60"}, 10, fires=False),
    case("TidewatchScaleRefused", {calls("refused"): "0+6x60"}, 40, fires=True, recommendation="dns"),
    case("TidewatchScaleRefused", {calls("refused"): "7x60", calls("ok"): "0+1x60"}, 40, fires=False),
    # A recommender that polls once an hour refuses once an hour.
    case(
        "TidewatchScaleRefused",
        {calls("refused"): every_minutes(60, 5, 4), POLL_INTERVAL: "3600x200"},
        58,
        fires=True,
        recommendation="dns",
    ),
    case(
        "TidewatchScaleRefused",
        {calls("refused"): every_minutes(60, 5, 4), POLL_INTERVAL: "3600x200"},
        125,
        fires=True,
        recommendation="dns",
    ),
    case(
        "TidewatchScaleRefused",
        {calls("refused"): every_minutes(20, 5, 9), POLL_INTERVAL: "1200x200"},
        125,
        fires=True,
        recommendation="dns",
    ),
    case("TidewatchScaleRefused", {calls("refused"): "0x4 1x200", POLL_INTERVAL: "3600x200"}, 90, fires=False),
    case("TidewatchScaleRefused", {calls("refused"): "0+1x10 10x60", POLL_INTERVAL: "10x70"}, 45, fires=False),
    case("TidewatchScaleRefused", {calls("refused"): "0x60", POLL_INTERVAL: "3600x60"}, 40, fires=False),
    case("TidewatchScaleCallsFail", {calls("error"): "0+2x60"}, 30, fires=True, recommendation="dns"),
    case("TidewatchScaleCallsFail", {calls("error"): "0+2x60", calls("ok"): "0+1x60"}, 30, fires=False),
    case("TidewatchScaleCallsFail", {calls("error"): "0x60", calls("conflict"): "0+1x60"}, 30, fires=False),
    case("TidewatchLeaderLost", {LEADER: "0x60", STANDBY: "0x60"}, 5, fires=True),
    case("TidewatchLeaderLost", {LEADER: "1x60", STANDBY: "0x60"}, 5, fires=False),
    case("TidewatchLeaderLost", {LEADER: "1x5 0x60", STANDBY: "0x6 1x60"}, 10, fires=False),
    case("TidewatchPollsStopped", {LEADER: "1x60", POLLED: "60x60"}, 20, fires=True),
    case("TidewatchPollsStopped", {LEADER: "1x60", POLLED: "0+60x60"}, 20, fires=False),
    case("TidewatchPollsStopped", {LEADER: "1x60", POLLED: "60x60", status("ok"): "1x60"}, 20, fires=False),
    case("TidewatchPollsStopped", {LEADER: "0x60", POLLED: "60x60"}, 20, fires=False),
    # Without recommendations there is no status, and the next poll is not due for an hour.
    case("TidewatchPollsStopped", {LEADER: "1x90", POLLED: "60x90", POLL_INTERVAL: "3600x90"}, 55, fires=False),
    case("TidewatchPollsStopped", {LEADER: "1x90", POLLED: "60x90", POLL_INTERVAL: "3600x90"}, 75, fires=True),
    case("TidewatchPollsStopped", {LEADER: "1x60", POLLED: "60x60", POLL_INTERVAL: "10x60"}, 20, fires=True),
    # No poll of the leader has ended since its start.
    case("TidewatchPollsStopped", {LEADER: "1x60", POLLED: "0x60", POLL_INTERVAL: "10x60"}, 20, fires=True),
    case(
        "TidewatchForecastWorseThanHeadroom",
        {ratio("linear"): "1.5x150", active("linear"): "1x150"},
        1450,
        fires=True,
        recommendation="chat",
    ),
    case(
        "TidewatchForecastWorseThanHeadroom",
        {
            ratio("linear"): "1.5x150",
            ratio("seasonal"): "0.4x150",
            ratio("reactive"): "2x150",
            active("seasonal"): "1x150",
            active("reactive"): "1x150",
        },
        1450,
        fires=False,
    ),
    case(
        "TidewatchForecastWorseThanHeadroom",
        {ratio("linear"): "1.5x70 0.9x80", active("linear"): "1x150"},
        1450,
        fires=False,
    ),
    case("TidewatchForecastOverBudget", {COST: "0.3x150", BUDGET: "0.2x150"}, 1450, fires=True, recommendation="chat"),
    case("TidewatchForecastOverBudget", {COST: "0.24x150", BUDGET: "0.2x150"}, 1450, fires=False),
    case("TidewatchForecastOverBudget", {COST: "3x150"}, 1450, fires=False),
    case("TidewatchForecastOverBudget", {COST: "0.3x70 0.2x80", BUDGET: "0.2x150"}, 1450, fires=False),
    case("TidewatchForecastBounded", {BOUNDED: "0+6x500"}, 450, fires=True, recommendation="chat", model="linear"),
    case("TidewatchForecastBounded", {BOUNDED: "5x500"}, 450, fires=False),
    case("TidewatchForecastBounded", {BOUNDED: "0+6x100 600x400"}, 450, fires=False),
    case(
        "TidewatchLoadHistoryMissing", {LACKING: "86400x200", LEADER: "1x200"}, 130, fires=True, recommendation="chat"
    ),
    case("TidewatchLoadHistoryMissing", {LACKING: "7200x200", LEADER: "1x200"}, 130, fires=False),
    case("TidewatchLoadHistoryMissing", {LACKING: "86400x200", LEADER: "0x200"}, 130, fires=False),
    case("TidewatchLoadHistoryMissing", {LACKING: "86400x60 0x140", LEADER: "1x200"}, 130, fires=False),
    case(
        "TidewatchModelFitsFail",
        {trials("deadline"): HOURLY_FAILURES},
        1500,
        fires=True,
        recommendation="chat",
        model="seasonal",
    ),
    case(
        "TidewatchModelFitsFail", {trials("deadline"): HOURLY_FAILURES, trials("ok"): "0x24 1x130"}, 1500, fires=False
    ),
    case("TidewatchModelFitsFail", {trials("deadline"): "0x24 1x130"}, 1500, fires=False),
    case("TidewatchModelFitsFail", {trials("closed"): HOURLY_FAILURES}, 1500, fires=False),
    case("TidewatchPodsFitNoNodeGroup", {LEFT_PODS: "4x60"}, 20, fires=True, recommendation="workers"),
    case("TidewatchPodsFitNoNodeGroup", {LEFT_PODS: "4x60"}, 14, fires=False),
    case("TidewatchPodsFitNoNodeGroup", {LEFT_PODS: "4x10 0x5 4x40"}, 28, fires=False),
    case("TidewatchPodsFitNoNodeGroup", {LEFT_PODS: "0x60"}, 40, fires=False),
    case(
        "TidewatchNodeGroupAtMaximum",
        nodes("9x60") | {LEFT_PODS: "4x60"},
        20,
        fires=True,
        recommendation="workers",
        node_group="general",
    ),
    case("TidewatchNodeGroupAtMaximum", nodes("9x60") | {LEFT_PODS: "0x60"}, 20, fires=False),
    case("TidewatchNodeGroupAtMaximum", nodes("8x60") | {LEFT_PODS: "4x60"}, 20, fires=False),
    case("TidewatchNodeGroupAtMaximum", nodes("9x60", smallest=9) | {LEFT_PODS: "4x60"}, 20, fires=False),
    case("TidewatchNodeGroupAtMaximum", nodes("9x8 8x52") | {LEFT_PODS: "4x60"}, 20, fires=False),
    case("TidewatchNodesNotAdded", nodes("5x60"), 40, fires=True, recommendation="workers", node_group="general"),
    case("TidewatchNodesNotAdded", nodes("5x60"), 20, fires=False),
    case("TidewatchNodesNotAdded", nodes("5x60", actual="3x20 5x40"), 40, fires=False),
    case("TidewatchNodesNotAdded", nodes("2x60"), 40, fires=False),
    # The size is written, and the nodes do not come.
    case(
        "TidewatchNodesNotAdded",
        nodes("5x60", desired="5x60"),
        40,
        fires=True,
        recommendation="workers",
        node_group="general",
    ),
    # They are taken off the size after a quarter of an hour, and requested again after each back-off.
    case(
        "TidewatchNodesNotAdded",
        nodes("3x2 5x14 3x4 5x14 3x9 5x60", actual="3x99", desired="3x3 5x13 3x5 5x13 3x10 5x60"),
        40,
        fires=True,
        recommendation="workers",
        node_group="general",
    ),
    # They come, or another group gets them once.
    case("TidewatchNodesNotAdded", nodes("5x60", actual="3x4 5x56", desired="5x60"), 40, fires=False),
    case("TidewatchNodesNotAdded", nodes("3x2 5x14 3x60", actual="3x99", desired="3x3 5x13 3x60"), 34, fires=False),
    # Nodes are removed one after the other: the size of a moment ago is no present need.
    case("TidewatchNodesNotAdded", nodes("9x9 8x9 7x9 6x9 5x9 4x9", actual="9x9 8x9 7x9 6x9 5x9 4x9"), 45, fires=False),
    case("TidewatchClusterSizeHeld", nodes("5x60") | {HELD_SIZE: "1x60"}, 40, fires=True, recommendation="workers"),
    case("TidewatchClusterSizeHeld", nodes("5x60") | {HELD_SIZE: "1x20 0x40"}, 40, fires=False),
    # Other recommendations are held whenever somebody pauses them, which is no fault.
    case("TidewatchClusterSizeHeld", {HELD_SIZE: "1x60"}, 40, fires=False),
    case("TidewatchNodeLoadsMissing", {verdicts("fresh"): "40x60", verdicts("stale"): "60x60"}, 10, fires=True),
    case("TidewatchNodeLoadsMissing", {verdicts("missing"): "100x60"}, 10, fires=True),
    case(
        "TidewatchNodeLoadsMissing",
        {verdicts("fresh"): "100x60", verdicts("fresh", OTHER_POD): "0x60", verdicts("stale", OTHER_POD): "100x60"},
        10,
        fires=True,
    ),
    case("TidewatchNodeLoadsMissing", {verdicts("fresh"): "40x60", verdicts("jumped"): "60x60"}, 10, fires=False),
    case("TidewatchNodeLoadsMissing", {verdicts("fresh"): "60x60", verdicts("stale"): "40x60"}, 10, fires=False),
    case("TidewatchNodeLoadsMissing", {verdicts("stale"): "100x3 0x60", verdicts("fresh"): "1x60"}, 10, fires=False),
    case("TidewatchNodesUnmapped", {UNMAPPED: "3x60"}, 20, fires=True),
    case("TidewatchNodesUnmapped", {UNMAPPED: "0x60"}, 20, fires=False),
    case("TidewatchNodesUnmapped", {UNMAPPED: "3x10 0x60"}, 20, fires=False),
    case("TidewatchNodeSeriesRefused", {REFUSED: "0x5 2x60"}, 25, fires=True),
    case("TidewatchNodeSeriesRefused", {REFUSED: "0x60", UNMAPPED: "3x60"}, 25, fires=False),
    case("TidewatchNodeSeriesRefused", {REFUSED: "2x10 0x60"}, 25, fires=False),
    case("TidewatchScoresWithoutMetrics", {basis("requests"): "1x60"}, 15, fires=True),
    case("TidewatchScoresWithoutMetrics", {basis("none"): "1x60"}, 15, fires=True),
    # After five minutes without metrics, the basis `none` becomes `requests`: it is the same outage.
    case(
        "TidewatchScoresWithoutMetrics",
        {basis("metrics"): "1x1 0x60", basis("none"): "0x1 1x4 0x60", basis("requests"): "0x6 1x60"},
        13,
        fires=True,
    ),
    case(
        "TidewatchScoresWithoutMetrics",
        {basis("metrics"): "1x60", basis("none"): "0x60", basis("requests"): "0x60"},
        15,
        fires=False,
    ),
    case("TidewatchScoresWithoutMetrics", {basis("none"): "1x5 0x60"}, 15, fires=False),
    case(
        "TidewatchExtenderErrors", {extender_calls("200"): "0+90x60", extender_calls("500"): "0+10x60"}, 20, fires=True
    ),
    case(
        "TidewatchExtenderErrors", {extender_calls("200"): "0+99x60", extender_calls("500"): "0+1x60"}, 20, fires=False
    ),
    case("TidewatchExtenderErrors", {extender_calls("200"): "0+90x60"}, 20, fires=False),
    case("TidewatchExtenderSlow", extender_durations(0.2), 20, fires=True, verb="filter"),
    case("TidewatchExtenderSlow", extender_durations(0.01), 20, fires=False),
    case(
        "TidewatchReplicasOnHotNodes",
        {CROWDED: "0.75x60"},
        20,
        fires=True,
        controller="ReplicaSet/dns",
        controller_namespace="kube-system",
    ),
    case("TidewatchReplicasOnHotNodes", {CROWDED: "0.75x10 _x60"}, 20, fires=False),
    case("TidewatchReplicasOnHotNodes", {CROWDED: "0.4x60"}, 20, fires=False),
    case("TidewatchStateFileFails", {STATE_FILE: "0+2x60"}, 25, fires=True, instance="a"),
    case("TidewatchStateFileFails", {STATE_FILE: "7x60"}, 25, fires=False),
    case("TidewatchStateFileFails", {STATE_FILE: "0x5 1x60"}, 25, fires=False),
)
