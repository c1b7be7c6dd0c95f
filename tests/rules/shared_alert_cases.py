"""When each alert about all programs fires and when it is silent."""

from __future__ import annotations

from tests.rules.alert_case import case
from tests.rules.alert_series import (
    BUILD,
    CREDENTIALS,
    FORBIDDEN,
    HEARD,
    OTHER_POD,
    POD,
    RECOMMENDER_HEARD,
    RECOMMENDER_RELOADED,
    RELOADED,
    backend_queries,
    certificate,
    every_minutes,
    exits,
    queries,
)

CASES = (
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
)
