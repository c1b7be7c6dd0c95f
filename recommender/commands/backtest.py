"""`tidewatch-recommender backtest`: replays recorded load, and says what each policy would have cost and missed."""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, NoReturn

import msgspec
import numpy as np
from prometheus_client import CollectorRegistry

from adapter.documents.tree import nearest
from adapter.objects.durations import DurationError, parse_go_duration, parse_prometheus_duration
from adapter.options.logs import LOG_FLAGS, configure_logs_by
from adapter.options.version import program_version
from adapter.service.children import Children
from adapter.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.service.flags.table import NUMBER, PATH, TEXT, CommandFlags, Flag, Kind, one_of
from adapter.sources.prometheus.errors import SettingsError
from adapter.sources.prometheus.settings import PrometheusSettings
from recommender.backtest.document import backtest_document
from recommender.backtest.errors import BacktestError
from recommender.backtest.options import (
    DEFAULT_STARTUP_SECONDS,
    DEFAULT_WARM_UP_SECONDS,
    BacktestOptions,
)
from recommender.backtest.progress import ProgressLine
from recommender.backtest.prometheus_range import LoadRange, read_range
from recommender.backtest.range_cache import RangeCache
from recommender.backtest.replay import replay
from recommender.backtest.report import Actuator
from recommender.backtest.resampling import Missing, resampled
from recommender.backtest.series import write_series
from recommender.backtest.table import report_text
from recommender.backtest.trace import read_trace
from recommender.commands.configuration_file import configuration_or_exit
from recommender.commands.program import METRICS_PREFIX, PROGRAM
from recommender.decisions.times import parse_rfc3339
from recommender.predictive.models.table import MODELS
from recommender.predictive.policy.arithmetic import MOST_REPLICAS
from recommender.predictive.settings import PredictiveSettings
from recommender.predictive.simulation.session_option import SessionOptionError, parse_sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.service.flags.table import FlagValues
    from recommender.backtest.report import BacktestReport
    from recommender.backtest.trace import RecordedLoad
    from recommender.configuration.model import Configuration
    from recommender.predictive.history import LoadHistory


def _span(text: str) -> float:
    """Return the seconds of `90`, `90s`, `1m30s` or `8d`; raises ValueError."""
    for parse in (float, parse_go_duration, parse_prometheus_duration):
        try:
            seconds = parse(text)
        except (ValueError, DurationError):
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    raise ValueError(f"{text!r} is not a duration: write seconds, or numbers with units, such as 90s, 5m or 8d")


_PROMETHEUS_STEP_SECONDS = 60.0
_LONGEST_STARTUP_SECONDS = 86_400.0
"""As for `horizon` of the configuration."""
SPAN = Kind("DURATION", _span, lambda seconds: f"{seconds:g}s")

BACKTEST = CommandFlags(
    program=f"{PROGRAM} backtest",
    version=program_version(),
    summary=(
        "Replays recorded load through every policy, and compares each with plain headroom at the same replica-hours. "
        "Exit status 2 if the configuration or the load cannot be read."
    ),
    flags=(
        Flag(name="config", kind=PATH, help="The configuration file. Without one, --trace is replayed with defaults."),
        Flag(
            name="recommendation",
            kind=TEXT,
            help="The recommendation to replay; needed if the file has several predictive ones.",
        ),
        Flag(name="trace", kind=PATH, help="Recorded load: a CSV file with the columns timestamp and value."),
        Flag(
            name="prometheus-url",
            kind=TEXT,
            help="Base URL of a Prometheus to ask for the load instead (default: that of the configuration). "
            "Credentials of the configuration are sent to its own URL only.",
        ),
        Flag(name="start", kind=TEXT, help="Beginning of the load in Prometheus, such as 2026-11-07T00:00:00Z."),
        Flag(name="end", kind=TEXT, help="End of the load in Prometheus."),
        Flag(
            name="actuator",
            kind=one_of(*(each.value for each in Actuator)),
            default=Actuator.SCALE.value,
            help="What sets the size: the recommender itself, or an HPA that reads the recommendation.",
        ),
        Flag(
            name="startup-seconds",
            kind=SPAN,
            help=f"Start-up time of a pod (default: horizon of the configuration, else {DEFAULT_STARTUP_SECONDS:g}).",
        ),
        Flag(
            name="load-per-replica",
            kind=NUMBER,
            help="Load that one replica serves (default: loadPerReplica of the configuration, else the 99th "
            "percentile / 20).",
        ),
        Flag(
            name="warm-up",
            kind=SPAN,
            default=DEFAULT_WARM_UP_SECONDS,
            help="Time at the beginning that is not judged, never more than half of the trace.",
        ),
        Flag(
            name="step",
            kind=SPAN,
            help="Step of the replay: the mean of the samples in it (default: their median step; 60s for Prometheus).",
        ),
        Flag(
            name="missing",
            kind=one_of(*(each.value for each in Missing)),
            default=Missing.GAP.value,
            help="What a step without a sample means: gap, the load is unknown and the step is not judged; "
            "zero, there was no load.",
        ),
        Flag(
            name="connections",
            kind=TEXT,
            help="The load holds new long-lived connections of each step, which stay open: mean-session=10m, and "
            "optionally back-off=30s and limit=25000, the connections that a pod takes.",
        ),
        Flag(
            name="output",
            short="o",
            kind=one_of("text", "table", "json"),
            default="text",
            help="How the report is printed; table is another name for text.",
        ),
        Flag(name="series", kind=PATH, help="Also write load, prediction and replicas of each step to this CSV file."),
        Flag(name="plot", kind=PATH, help="Also draw load, replicas and shortage of each policy into this PNG file."),
        *LOG_FLAGS,
    ),
)


def backtest(arguments: Sequence[str]) -> NoReturn:
    """Run the command; leaves by SystemExit."""
    values = flags_or_exit(BACKTEST, arguments, os.environ)
    configure_logs_by(values)
    configuration = configuration_or_exit(values, for_backtest=True)[1] if values.path("config") else None
    try:
        _check_outputs(values)
        report = _replayed(values, configuration, _settings(values, configuration))
        _print(values, report)
        _write(values, report)
    except (UsageError, BacktestError) as error:
        exit_for_usage(PROGRAM, str(error))
    sys.exit(0)


def _check_outputs(values: FlagValues) -> None:
    """Refuse files that cannot be written before a replay that takes minutes."""
    for name in ("series", "plot"):
        path = values.path(name)
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise UsageError(f"--{name}: {path} cannot be written: name a file in a folder that exists")


def _write(values: FlagValues, report: BacktestReport) -> None:
    series, plot = values.path("series"), values.path("plot")
    if series is not None:
        write_series(report, series)
    if plot is not None:
        from recommender.backtest.plot import write_plot  # noqa: PLC0415 - matplotlib takes a second to load

        write_plot(report, plot)


def _settings(values: FlagValues, configuration: Configuration | None) -> PredictiveSettings | None:
    """Return what the chosen recommendation states; None without a configuration."""
    name = values.text("recommendation")
    if configuration is None:
        if name:
            raise UsageError("--recommendation needs --config: name the configuration file that holds it")
        return None
    refused = next((each for each in configuration.refused if each.name == name or not name), None)
    found: dict[str, PredictiveSettings] = {}
    for each in configuration.recommendations:
        subject: object = each.subject
        if isinstance(subject, PredictiveSettings):
            found[each.policy.name] = subject
    if name in found:
        return found[name]
    if refused is not None:
        raise UsageError(str(refused.problems[0]))
    if not name and len(found) == 1:
        return next(iter(found.values()))
    known = ", ".join(found) or "none"
    if not name:
        raise UsageError(f"--config has {len(found)} predictive recommendations ({known}): write --recommendation=NAME")
    meant = nearest(name, found)
    hint = f"did you mean {meant}?" if meant else f"there are {known}"
    raise UsageError(f"--recommendation: there is no predictive recommendation {name!r}: {hint}")


def _options(values: FlagValues, settings: PredictiveSettings | None) -> BacktestOptions:
    """Return the options; flags win over the configuration."""
    known = settings or BacktestOptions().settings
    startup = known.horizon_seconds if known.horizon_seconds is not None else DEFAULT_STARTUP_SECONDS
    per_replica = values.number("load-per-replica")
    if per_replica is not None and per_replica <= 0:
        raise UsageError("--load-per-replica must be above 0: write what one replica serves")
    if "startup-seconds" in values.given:
        startup = values.seconds("startup-seconds")
        if startup > _LONGEST_STARTUP_SECONDS:
            raise UsageError(f"--startup-seconds of {startup:g} s: write the start-up time of a pod, at most a day")
    return BacktestOptions(
        settings=known,
        actuator=Actuator(values.text("actuator")),
        startup_seconds=startup,
        load_per_replica=known.load_per_replica if per_replica is None else per_replica,
        warm_up_seconds=values.seconds("warm-up"),
        connections=_connections(values),
    )


def _connections(values: FlagValues) -> str:
    """Return the option, checked; what a pod takes by default is known with the load only."""
    text = values.text("connections")
    if text:
        try:
            parse_sessions(text, 1.0)
        except SessionOptionError as error:
            raise UsageError(f"--connections: {error}") from error
    return text


def _trace(
    values: FlagValues, configuration: Configuration | None, settings: PredictiveSettings | None, line: ProgressLine
) -> RecordedLoad:
    """Return the recorded load from the file, or from Prometheus."""
    path = values.path("trace")
    ranged = sorted(values.given & {"prometheus-url", "start", "end"})
    if path is not None:
        if ranged:
            raise UsageError(f"--trace and --{ranged[0]} exclude each other: the load is either in a file or asked for")
        return read_trace(path)
    if not ranged:
        raise UsageError("no load is named: write --trace FILE.csv, or --prometheus-url URL --start T --end T")
    if configuration is None or settings is None or settings.load is None:
        raise UsageError("--prometheus-url needs --config with a predictive recommendation: its load is the query")
    step = values.seconds("step") if "step" in values.given else _PROMETHEUS_STEP_SECONDS
    if step < 1 or step != int(step):
        raise UsageError(f"--step of {step:g} s: Prometheus is asked in whole seconds, 1 s or more")
    asked = LoadRange(
        _prometheus(values, configuration), settings.load, _time(values, "start"), _time(values, "end"), int(step)
    )
    cache = RangeCache.of(configuration.state / "backtest", asked.settings, asked.query, asked.step_seconds)
    return read_range(asked, cache, time.time(), line.show)


def _prometheus(values: FlagValues, configuration: Configuration) -> PrometheusSettings:
    """Return the connection: credentials of the configuration belong to its own address alone."""
    url, known = values.text("prometheus-url"), configuration.prometheus
    if known is not None and url in {"", known.url}:
        return known
    if not url:
        raise UsageError("--prometheus-url is missing, and the configuration has no prometheus: write its address")
    try:
        return PrometheusSettings(url)
    except SettingsError as error:
        raise UsageError(f"--prometheus-url: {error}") from error


def _time(values: FlagValues, name: str) -> float:
    if not values.text(name):
        raise UsageError(f"--{name} is missing: write a time such as 2026-11-21T06:00:00Z")
    try:
        return parse_rfc3339(values.text(name))
    except ValueError as error:
        raise UsageError(f"--{name}: {error}") from error


def _replayed(
    values: FlagValues, configuration: Configuration | None, settings: PredictiveSettings | None
) -> BacktestReport:
    options = _options(values, settings)
    step = values.seconds("step") if "step" in values.given else None
    if step == 0:
        raise UsageError("--step must be above 0: write a duration such as 60s")
    with closing(ProgressLine()) as line:
        trace = _trace(values, configuration, settings, line)
    history = resampled(trace, step, Missing(values.text("missing")))
    _check_replicas(history, options)
    line = ProgressLine()
    with closing(line), closing(Children(CollectorRegistry(), METRICS_PREFIX, most=1)) as children:
        return replay(trace, history, options, MODELS, children, line.show)


def _check_replicas(history: LoadHistory, options: BacktestOptions) -> None:
    """Refuse a load that no number of replicas serves: it is a mistake by units, and has no meaningful figures."""
    largest, per_replica = float(np.nanmax(history.values)), options.load_per_replica
    if per_replica is not None and largest > MOST_REPLICAS * per_replica:
        raise UsageError(
            f"--load-per-replica of {per_replica:g}: the largest load, {largest:g}, needs more replicas than "
            f"{MOST_REPLICAS:,}: write what one replica serves, in the unit of the load"
        )


def _print(values: FlagValues, report: BacktestReport) -> None:
    if values.text("output") == "json":
        document = msgspec.json.encode(backtest_document(report))
        print(msgspec.json.format(document, indent=2).decode())  # noqa: T201 - what was asked for
        return
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    print(report_text(report, colour=colour))  # noqa: T201 - likewise
