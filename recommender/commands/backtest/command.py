"""`tidewatch-recommender backtest`: replays recorded load, and reports the cost and the shortage of each policy."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np
from prometheus_client import CollectorRegistry

from adapter.foundation.objects.durations import format_duration
from adapter.foundation.options.logs import configure_logs_by
from adapter.foundation.reports.documents import json_text
from adapter.foundation.reports.terminal_escaping import is_coloured
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from recommender.backtest.backtest import run_backtest
from recommender.backtest.errors import BacktestError
from recommender.backtest.options import DEFAULT_STARTUP_SECONDS, BacktestOptions
from recommender.backtest.progress import ProgressLine
from recommender.backtest.recorded.resampling import Missing, resample
from recommender.backtest.report import Actuator, BacktestReport
from recommender.backtest.reports.document import backtest_document
from recommender.backtest.reports.series import write_series
from recommender.backtest.reports.table import report_text
from recommender.child_processes.parent import Children
from recommender.commands.backtest.flags import BACKTEST
from recommender.commands.backtest.load import read_load
from recommender.commands.chosen_recommendation import chosen
from recommender.commands.configuration_file import configuration_or_exit
from recommender.commands.output_files import check_output_file, check_picture
from recommender.commands.program import METRICS_PREFIX, PROGRAM
from recommender.kinds.predictive.models.table import MODELS
from recommender.kinds.predictive.policy.arithmetic import MOST_REPLICAS
from recommender.kinds.predictive.predictive_settings import PredictiveSettings, predictive_settings
from recommender.kinds.predictive.simulation.session_option import SessionOptionError, parse_sessions
from recommender.kinds.predictive.upper_bound import LARGEST_LOAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapter.foundation.service.flags.table import FlagValues
    from recommender.backtest.recorded.trace_file import RecordedLoad
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.kinds.predictive.history import LoadHistory

_LONGEST_STARTUP_SECONDS: Final = 86_400.0
"""The longest start-up time that is accepted; the same limit holds for `horizon` in the configuration."""


def backtest(arguments: Sequence[str]) -> NoReturn:
    """Run the command. Always raises SystemExit."""
    values = flags_or_exit(BACKTEST, arguments)
    configure_logs_by(values)
    configuration = configuration_or_exit(values, for_backtest=True)[1] if values.path("config") else None
    try:
        check_output_file(values, "series")
        check_picture(values)
        report = _replay(values, configuration, _settings(values, configuration))
        _print(values, report)
        _write(values, report)
    except (UsageError, BacktestError) as error:
        exit_for_usage(PROGRAM, str(error))
    sys.exit(0)


def _write(values: FlagValues, report: BacktestReport) -> None:
    series, plot = values.path("series"), values.path("plot")
    if series is not None:
        write_series(report, series)
    if plot is not None:
        from recommender.backtest.reports.plot import write_plot  # noqa: PLC0415 - matplotlib takes a second to load

        write_plot(report, plot)


def _settings(values: FlagValues, configuration: Configuration | None) -> PredictiveSettings | None:
    """Return the settings of the chosen recommendation; None without a configuration."""
    name = values.text("recommendation")
    if configuration is None:
        if name:
            raise UsageError("--recommendation needs --config: name the configuration file that holds it")
        return None
    found = predictive_settings(configuration.recommendations)
    return chosen(name, "predictive", found, configuration.refused, "load")


def _options(values: FlagValues, settings: PredictiveSettings | None) -> BacktestOptions:
    """Return the options; flags take precedence over the configuration."""
    known = settings or BacktestOptions().settings
    startup = known.horizon_seconds if known.horizon_seconds is not None else DEFAULT_STARTUP_SECONDS
    per_replica = values.number("load-per-replica")
    if per_replica is not None and not 0 < per_replica <= LARGEST_LOAD:
        raise UsageError(
            f"--load-per-replica must be above 0, and at most {LARGEST_LOAD:.2g}: write what one replica serves"
        )
    if "startup-seconds" in values.given:
        startup = values.seconds("startup-seconds")
        if startup > _LONGEST_STARTUP_SECONDS:
            raise UsageError(
                f"--startup-seconds of {format_duration(startup)}: write the start-up time of a pod, at most a day"
            )
    return BacktestOptions(
        settings=known,
        actuator=Actuator(values.text("actuator")),
        startup_seconds=startup,
        load_per_replica=known.load_per_replica if per_replica is None else per_replica,
        warm_up_seconds=values.seconds("warm-up"),
        connections=_connections(values),
    )


def _connections(values: FlagValues) -> str:
    """Return the checked text of `--connections`; a pod's default capacity is known only once the load is read."""
    text = values.text("connections")
    if text:
        try:
            parse_sessions(text, 1.0)
        except SessionOptionError as error:
            raise UsageError(f"--connections: {error}") from error
    return text


def _replay(
    values: FlagValues, configuration: Configuration | None, settings: PredictiveSettings | None
) -> BacktestReport:
    options = _options(values, settings)
    step = values.seconds("step") if "step" in values.given else None
    if step == 0:
        raise UsageError("--step must be above 0: write a duration such as 60s")
    with closing(ProgressLine()) as line:
        trace = read_load(values, configuration, settings, line)
    history = resample(trace, step, Missing(values.text("missing")))
    _check_length(trace, history)
    _check_replicas(history, options)
    line = ProgressLine()
    with closing(line), closing(Children(CollectorRegistry(), METRICS_PREFIX, most=1)) as children:
        report = run_backtest(trace, history, options, MODELS, children, line.show)
    return replace(report, notes=(*_assumptions(values, settings, report), *report.notes))


def _assumptions(values: FlagValues, settings: PredictiveSettings | None, report: BacktestReport) -> Iterator[str]:
    """Yield the assumptions, each with the flag that changes it."""
    fleet = report.fleet_settings
    if "startup-seconds" not in values.given and (settings is None or settings.horizon_seconds is None):
        yield f"A pod is assumed to start in {fleet.startup_seconds:g} s: --startup-seconds changes it."
    if "load-per-replica" not in values.given and (settings is None or settings.load_per_replica is None):
        yield (
            f"A replica is assumed to serve {fleet.load_per_replica:,.6g}, so that 20 serve the 99th percentile of the "
            "load: --load-per-replica changes it."
        )


def _check_length(trace: RecordedLoad, history: LoadHistory) -> None:
    """Refuse a load of a single step, which allows no second decision, and steps in which nothing could be scaled."""
    if history.step_seconds < 1:
        # Models look at each step of a start-up, which may be hundreds of thousands.
        raise BacktestError(
            f"{trace.source}: its steps of {history.step_seconds:g} s are below a second: write --step=1s or more"
        )
    if np.count_nonzero(~np.isnan(history.values)) < 2:
        raise BacktestError(
            f"{trace.source}: the load of only one step of {history.step_seconds:g} s is known, so nothing can be "
            "replayed: record more load, or write a shorter --step"
        )


def _check_replicas(history: LoadHistory, options: BacktestOptions) -> None:
    """Refuse a load that no number of replicas serves: its unit is probably wrong, and figures would be meaningless."""
    largest, per_replica = float(np.nanmax(history.values)), options.load_per_replica
    if per_replica is not None and largest > MOST_REPLICAS * per_replica:
        raise UsageError(
            f"--load-per-replica of {per_replica:g}: the largest load, {largest:g}, needs more replicas than "
            f"{MOST_REPLICAS:,}: write what one replica serves, in the unit of the load"
        )


def _print(values: FlagValues, report: BacktestReport) -> None:
    if values.text("output") == "json":
        print(json_text(backtest_document(report)))  # noqa: T201 - the output of the command
        return
    print(report_text(report, colour=is_coloured()))  # noqa: T201 - likewise
