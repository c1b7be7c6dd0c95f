"""`tidewatch-adapter readiness`: the readiness probe of a pod with a connection limit.

The command runs as a sidecar in many pods, so it must be small: it may not import packages beyond the standard library.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from adapter.commands.program import PROGRAM
from adapter.foundation.options.logs import LOG_FLAGS, configure_logs_by
from adapter.foundation.service.flags.parsing import exit_for_usage, flags_or_exit
from adapter.foundation.service.flags.table import ADDRESS, DURATION, INTEGER, NUMBER, TEXT, CommandFlags, Flag
from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.service.server.addresses import Address
from adapter.readiness.limit import connection_limit
from adapter.readiness.scrape import parse_metrics_url, read_total
from adapter.readiness.selector import parse_series_choice
from adapter.readiness.sidecar import READ_SECONDS, hold_endings, run_sidecar
from adapter.readiness.sidecar_state import SidecarState
from adapter.readiness.verdict import ReadinessRules

T = TypeVar("T")

_log = logging.getLogger(__name__)

SHORTEST_STALE_SECONDS = 2.0
"""The time that two reads take. With less, one slow read would count as an outage."""

READINESS = CommandFlags(
    program=f"{PROGRAM} readiness",
    summary=(
        "Answers the readiness probe of the pod that it runs in, as a sidecar: 503 from --limit connections on, and "
        "200 again below --resume-ratio of it. If the metric cannot be read, the answer is 200, with the reason. "
        "The metric is read once a second, whatever the number of probes."
    ),
    examples=(
        f"{PROGRAM} readiness --metrics-url http://127.0.0.1:9000/metrics --metric websocket_connections --limit 25000",
        (
            f"{PROGRAM} readiness --metrics-url http://127.0.0.1:9000/metrics "
            "--metric 'connections{port=\"80\"}' --limit 500 --listen :8089"
        ),
    ),
    flags=(
        Flag(
            "metrics-url",
            TEXT,
            "The application's metrics, as in http://127.0.0.1:9000/metrics. Only http, without redirects.",
            required=True,
        ),
        Flag(
            "metric",
            TEXT,
            "Metric that counts the open connections, as in websocket_connections or "
            'websocket_connections{listener="public"}. All its series that match are added up.',
            required=True,
        ),
        Flag("limit", INTEGER, "Number of connections at which the pod is not ready.", required=True),
        Flag(
            "resume-ratio",
            NUMBER,
            "Share of the limit below which the pod is ready again; above 0, at most 1.",
            default=0.95,
        ),
        Flag(
            "stale-after",
            DURATION,
            "How long the last value counts while the metric cannot be read; then the pod is ready. At least 2s.",
            default=3.0,
        ),
        Flag("listen", ADDRESS, "Address of the probe and of /metrics.", default=Address("", 8089)),
        *LOG_FLAGS,
    ),
)


def readiness(arguments: Sequence[str]) -> None:
    """Run the command until a signal ends it. Raises SystemExit if it cannot start."""
    values = flags_or_exit(READINESS, arguments)
    url = _checked_flag("--metrics-url: ", lambda: parse_metrics_url(values.text("metrics-url")))
    choice = _checked_flag("--metric: ", lambda: parse_series_choice(values.text("metric")))
    limit = _checked_flag("", lambda: connection_limit(values.integer("limit"), values.number("resume-ratio") or 0.0))
    stale_after = values.seconds("stale-after")
    if stale_after < SHORTEST_STALE_SECONDS:
        exit_for_usage(PROGRAM, "--stale-after: the metric is read once a second, so write at least 2s")
    hold_endings()
    configure_logs_by(values, queued=True)
    for warning in values.warnings:
        _log.warning("%s", warning)
    state = SidecarState(ReadinessRules(choice.text, limit, stale_after))
    try:
        run_sidecar(
            values.address("listen") or Address("", 8089), state, partial(read_total, url, choice, READ_SECONDS)
        )
    except StartError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)  # noqa: T201 - the one line on stderr
        sys.exit(1)


def _checked_flag(prefix: str, read: Callable[[], T]) -> T:
    """Return the value of a flag, or exit with status 2 if the value is not valid."""
    try:
        return read()
    except ValueError as error:
        exit_for_usage(PROGRAM, f"{prefix}{error}")
