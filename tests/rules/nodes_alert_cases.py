"""When each alert about the loads of nodes fires and when it is silent."""

from __future__ import annotations

from tests.rules.alert_case import case
from tests.rules.alert_series import (
    CROWDED,
    OTHER_POD,
    REFUSED,
    STATE_FILE,
    UNMAPPED,
    basis,
    extender_calls,
    extender_durations,
    verdicts,
)

CASES = (
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
