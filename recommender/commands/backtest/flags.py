"""The flags of `tidewatch-recommender backtest`."""

from __future__ import annotations

from typing import Final

from adapter.foundation.options.logs import LOG_FLAGS
from adapter.foundation.options.report_format import output_flag
from adapter.foundation.service.flags.table import NUMBER, PATH, TEXT, CommandFlags, Flag, one_of, switch
from recommender.backtest.options import DEFAULT_STARTUP_SECONDS, DEFAULT_WARM_UP_SECONDS
from recommender.backtest.recorded.resampling import Missing
from recommender.backtest.report import Actuator
from recommender.commands.past_span import SPAN
from recommender.commands.program import PROGRAM

BACKTEST: Final = CommandFlags(
    program=f"{PROGRAM} backtest",
    summary=(
        "Replays recorded load through every policy, and compares each with plain headroom at the same replica-hours. "
        "Exit status 2 if the configuration or the load cannot be read."
    ),
    examples=(
        f"{PROGRAM} backtest --example",
        f"{PROGRAM} backtest --query 'sum(x)' --last 14d --prometheus-url http://127.0.0.1:9090",
    ),
    flags=(
        Flag("config", PATH, "The configuration file. Without one, the load is replayed with defaults."),
        Flag("recommendation", TEXT, "The recommendation to replay; needed if the file has several predictive ones."),
        Flag("trace", PATH, "Recorded load: a CSV file with the columns timestamp and value."),
        Flag(
            "query",
            TEXT,
            "PromQL of the load, with one series (default: load of the recommendation). Needs no --config.",
        ),
        Flag(
            "prometheus-url",
            TEXT,
            "Base URL of a Prometheus to read the load from (default: that of the configuration). Credentials of "
            "the configuration are sent to its own URL only.",
        ),
        Flag("last", SPAN, "How long the load in Prometheus is, up to --end (default: 14d)."),
        Flag(
            "start",
            TEXT,
            "Beginning of the load in Prometheus, instead of --last: 2026-11-07T00:00:00Z, a date (its midnight "
            "in UTC), or a time ago such as -14d.",
        ),
        Flag("end", TEXT, "End of the load in Prometheus, in the same form (default: now)."),
        switch("example", "Replay a generated load that needs no file: two weeks with a season, growth and a spike."),
        Flag(
            "actuator",
            one_of(*(each.value for each in Actuator)),
            "What scales the target: the recommender itself, or an HPA that reads the recommendation.",
            default=Actuator.SCALE.value,
        ),
        Flag(
            "startup-seconds",
            SPAN,
            f"Start-up time of a pod (default: horizon of the configuration, else {DEFAULT_STARTUP_SECONDS:g}).",
        ),
        Flag(
            "load-per-replica",
            NUMBER,
            "Load that one replica serves (default: loadPerReplica of the configuration, else the 99th "
            "percentile / 20).",
        ),
        Flag(
            "warm-up",
            SPAN,
            "Time at the beginning that is not judged, never more than half of the trace.",
            default=DEFAULT_WARM_UP_SECONDS,
        ),
        Flag(
            "step",
            SPAN,
            "Step of the replay: the mean of the samples in it (default: their median step; 60s for Prometheus).",
        ),
        Flag(
            "missing",
            one_of(*(each.value for each in Missing)),
            "How to treat a step without a sample: gap, the load is unknown and the step is not judged; zero, "
            "there was no load. A sample whose value is empty or NaN is unknown either way.",
            default=Missing.GAP.value,
        ),
        Flag(
            "connections",
            TEXT,
            "The load counts the new long-lived connections of each step, which stay open: mean-session=10m, and "
            "optionally back-off=30s and limit=25000, the connections that a pod takes.",
        ),
        output_flag(),
        Flag("series", PATH, "Also write load, prediction and replicas of each step to this CSV file."),
        Flag("plot", PATH, "Also draw load, replicas and shortage of each policy into this PNG or SVG file."),
        *LOG_FLAGS,
    ),
)
