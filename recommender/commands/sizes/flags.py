"""The flags of `sizes`."""

from __future__ import annotations

import math
from typing import Final

from adapter.foundation.objects.durations import format_duration, parse_duration
from adapter.foundation.options.logs import QUIET_LOG_FLAGS
from adapter.foundation.options.prometheus import NAMED_PROMETHEUS_FLAGS
from adapter.foundation.service.flags.table import PATH, TEXT, CommandFlags, Flag, FlagValues, Kind, one_of, switch
from recommender.commands.program import PROGRAM
from recommender.kinds.resources.bounds import SizeSettings
from recommender.kinds.resources.histograms import DAY_SECONDS
from recommender.kinds.resources.resources_settings import MARGIN_RATIO, OWN_PERCENTILE_MARGIN_RATIO, TARGET_PERCENTILE

_SHORTEST_SECONDS: Final = 3600.0
_LONGEST_SECONDS: Final = 90 * DAY_SECONDS
_DEFAULT_SECONDS: Final = 8 * DAY_SECONDS
BACKTEST_SECONDS: Final = 15 * DAY_SECONDS
_LARGEST_MARGIN: Final = 10.0
AUTO: Final = "auto"


def _last(text: str) -> float:
    seconds = parse_duration(text)
    if not _SHORTEST_SECONDS <= seconds <= _LONGEST_SECONDS:
        raise ValueError(f"{text!r} is not between 1h and 90d: write a duration such as 8d")
    return seconds


def _percentile(text: str) -> float:
    """Return the percentile as a share of 1; NaN for `auto`."""
    if text == AUTO:
        return math.nan
    try:
        percent = float(text)
    except ValueError:
        percent = 0.0
    if not 1 <= percent <= 100:
        raise ValueError(f"{text!r} is not a percentile: write auto, or a number from 1 to 100, such as 90")
    return percent / 100


def _margin(text: str) -> float:
    try:
        ratio = float(text.removesuffix("%")) / 100
    except ValueError:
        ratio = -1.0
    if not (text.endswith("%") and 0 <= ratio <= _LARGEST_MARGIN):
        raise ValueError(f"{text!r} is not a margin: write a percentage from 0% to 1000%, such as 15%")
    return ratio


SIZES: Final = CommandFlags(
    program=f"{PROGRAM} sizes",
    summary=(
        "Shows what each container should request, from its usage in Prometheus, and writes nothing. It "
        "needs no configuration file. "
        "Exit status 1 if no container has a size or can be judged; 2 if Prometheus cannot be read, or holds several "
        "clusters."
    ),
    examples=(
        f"{PROGRAM} sizes --prometheus-url http://prometheus:9090",
        f"{PROGRAM} sizes --prometheus-url http://prometheus:9090 --namespace shop -o patch",
    ),
    flags=(
        Flag("namespace", TEXT, "Only containers of this namespace (default: of all).", short="n"),
        Flag("workload", TEXT, "Only workloads with this name, as NAMESPACE/NAME."),
        Flag(
            "last",
            Kind("DURATION", _last, lambda seconds: format_duration(float(str(seconds)))),
            "How much history is used, 1h to 90d (default: 8d, and 15d with --backtest). Usage that is more "
            "than a few days old hardly counts.",
        ),
        Flag("end", TEXT, "Where the history ends, such as 2026-11-21T06:00:00Z (default: now)."),
        Flag(
            "percentile",
            Kind("auto|NUMBER", _percentile, lambda ratio: f"{float(str(ratio)) * 100:g}"),
            "Percentile of the usage, of the daily peaks for memory, that the request covers; auto: for each "
            "container, the one beyond which a larger request costs more than it is worth.",
            default=TARGET_PERCENTILE,
        ),
        Flag(
            "margin",
            Kind("PERCENTAGE", _margin, lambda ratio: f"{float(str(ratio)) * 100:g}%"),
            f"What is added to the percentile (default: {MARGIN_RATIO:.0%}, and "
            f"{OWN_PERCENTILE_MARGIN_RATIO:.0%} with --percentile=auto).",
        ),
        switch("also-with-hpa", "Also size workloads whose HorizontalPodAutoscaler follows CPU or memory."),
        Flag(
            "output",
            one_of("table", "text", "json", "csv", "yaml", "patch"),
            "How the result is printed; text is another name for table, and patch are commands of kubectl.",
            short="o",
            default="table",
        ),
        switch(
            "backtest",
            "Judge sizes on the history instead: current requests, these sizes, the Vertical Pod Autoscaler's and "
            "KRR's, each day from the days before it.",
        ),
        Flag("plot", PATH, "Also draw usage and sizes into this PNG or SVG file; needs --workload."),
        Flag(
            "kubeconfig",
            PATH,
            "Also list the VerticalPodAutoscalers of this cluster, and name those that size a workload too "
            "(default: no cluster is asked).",
        ),
        Flag("context", TEXT, "Context of the kubeconfig to use (default: its current context)."),
        *NAMED_PROMETHEUS_FLAGS,
        *QUIET_LOG_FLAGS,
    ),
)


def history_seconds(values: FlagValues) -> float:
    """Return the value of --last, or its default."""
    default = BACKTEST_SECONDS if values.boolean("backtest") else _DEFAULT_SECONDS
    found = values.number("last")
    return default if found is None else found


def size_settings(values: FlagValues) -> SizeSettings:
    """Return the settings in --percentile and --margin."""
    share, margin = values.number("percentile"), values.number("margin")
    percentile = None if share is None or math.isnan(share) else share
    if margin is None:
        margin = OWN_PERCENTILE_MARGIN_RATIO if percentile is None else MARGIN_RATIO
    return SizeSettings(percentile, margin)
