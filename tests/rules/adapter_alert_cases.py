"""When each alert about the adapter fires and when it is silent."""

from __future__ import annotations

from tests.rules.alert_case import case
from tests.rules.alert_series import OTHER_POD, POD, RULES_FAILING, RULES_OK, VALUES_ANSWERED, ages, queries, requests

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
    case("TidewatchAnswersOld", ages(57, 59), 20, fires=True),
    case("TidewatchAnswersOld", ages(0, 60), 20, fires=True),
    case("TidewatchAnswersOld", ages(19, 20), 20, fires=False),
    # Whatever nobody asks for more often than every 98 seconds.
    case("TidewatchAnswersOld", ages(0, 50), 20, fires=False),
)
