"""`tidewatch-recommender replay`: replays the past of a cluster with several size policies."""

from __future__ import annotations

import math
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Final, NoReturn

from adapter.foundation.objects.durations import format_duration
from adapter.foundation.options.logs import configure_quiet_logs_by
from adapter.foundation.reports.documents import json_text
from adapter.foundation.reports.terminal_escaping import is_coloured
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.runtime.garbage_collector import rare_collections
from adapter.foundation.sources.prometheus.errors import PrometheusError, SettingsError
from recommender.backtest.progress import ProgressLine
from recommender.commands.configuration_file import configuration_or_exit
from recommender.commands.output_files import check_picture
from recommender.commands.program import PROGRAM
from recommender.commands.replay.flags import REPLAY
from recommender.commands.replay.past import chosen_settings, read_past
from recommender.kinds.predictive.predictive_settings import predictive_settings
from recommender.recording.recording import RecordingError
from recommender.replay.assumptions import Assumptions
from recommender.replay.forecasts.workload_forecasts import ForecastPlan
from recommender.replay.replay import replay_report
from recommender.replay.reports.document import replay_document
from recommender.replay.reports.table import replay_text
from recommender.replay.spot import SpotMarket

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.replay.reports.report import ReplayReport


_LONGEST_STARTUP_SECONDS: Final = 86_400.0
_MOST_INTERRUPTIONS: Final = 60.0
"""The highest rate of interruptions that is accepted, per node and hour."""


def replay(arguments: Sequence[str]) -> NoReturn:
    """Run the command. Always raises SystemExit."""
    values = flags_or_exit(REPLAY, arguments)
    configure_quiet_logs_by(values)
    try:
        _check_flags(values)
        configuration = configuration_or_exit(values)[1]
        report = _report(values, configuration, chosen_settings(values.text("recommendation"), configuration))
        _print(values, report)
        plot = values.path("plot")
        if plot is not None:
            from recommender.replay.reports.plot import write_replay_plot  # noqa: PLC0415 - matplotlib takes a second to load

            write_replay_plot(report, plot)
    except (UsageError, RecordingError, PrometheusError, SettingsError) as error:
        exit_for_usage(PROGRAM, str(error))
    sys.exit(0)


def _check_flags(values: FlagValues) -> None:
    """Refuse a missing configuration, and a picture that cannot be written, before a replay that takes minutes."""
    if values.path("config") is None:
        raise UsageError("--config is missing: write the configuration file whose clusterSize is replayed")
    check_picture(values)


def _report(values: FlagValues, configuration: Configuration, settings: ClusterSizeSettings) -> ReplayReport:
    startup = values.seconds("startup-seconds") if "startup-seconds" in values.given else None
    if startup is not None and startup > _LONGEST_STARTUP_SECONDS:
        raise UsageError(
            f"--startup-seconds of {format_duration(startup)}: write the start-up time of a node, at most a day"
        )
    assumptions = assumptions_of(values, configuration, settings)
    with rare_collections(), closing(ProgressLine()) as line:
        recording = read_past(values, configuration, settings, line.show)
        return replay_report(recording, settings, startup, line.show, assumptions=assumptions)


def _print(values: FlagValues, report: ReplayReport) -> None:
    if values.text("output") == "json":
        print(json_text(replay_document(report)))  # noqa: T201 - the output of the command
        return
    print(replay_text(report, colour=is_coloured()))  # noqa: T201 - likewise


def assumptions_of(values: FlagValues, configuration: Configuration, settings: ClusterSizeSettings) -> Assumptions:
    """Return the stated assumptions. Raises UsageError."""
    market = _market(values)
    if not settings.forecasts:
        return Assumptions(market=market)
    return Assumptions(tuple(_forecasts(configuration, settings)), market)


def _forecasts(configuration: Configuration, settings: ClusterSizeSettings) -> Iterator[ForecastPlan]:
    """Yield the plan of each forecast that the settings name and that the configuration contains."""
    named = {one.recommendation for one in settings.forecasts}
    predictive = predictive_settings(configuration.recommendations)
    for policy in (each.policy for each in configuration.recommendations):
        if policy.name in named & predictive.keys():
            yield ForecastPlan(predictive[policy.name], policy.targets)


def _market(values: FlagValues) -> SpotMarket | None:
    """Return how spot machines are interrupted; None if no flag states it."""
    given = [name for name in ("spot-interruptions", "spot-absence") if name in values.given]
    if not given:
        return None
    if len(given) == 1:
        raise UsageError(
            f"--{given[0]} is given alone: a replay of spot machines needs --spot-interruptions GROUP=RATE, and "
            "--spot-absence, for how long after an interruption no further machine is available"
        )
    rates: dict[str, float] = {}
    for part in values.text("spot-interruptions").split(","):
        name, _, rate = part.strip().rpartition("=")
        rates[name] = _rate(name, rate)
    return SpotMarket(rates, values.seconds("spot-absence"), values.integer("spot-seed"))


def _rate(name: str, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not name or not 0 <= rate <= _MOST_INTERRUPTIONS:
        raise UsageError(
            f"--spot-interruptions: {f'{name}={text}' if name else text!r} is not GROUP=RATE: write how often a node "
            f"of the group is interrupted in an hour, from 0 to {_MOST_INTERRUPTIONS:g}, such as workers-spot=0.02"
        )
    return rate
