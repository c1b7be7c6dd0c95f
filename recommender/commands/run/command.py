"""`tidewatch-recommender run`: decides repeatedly until it is stopped."""

from __future__ import annotations

import functools
import logging
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from adapter.options.logs import configure_logs_by
from adapter.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.service.server.process import serve_forever
from recommender.commands.configuration_file import configuration_or_exit
from recommender.commands.program import PROGRAM
from recommender.commands.run.flags import RUN
from recommender.commands.run.settings import run_settings
from recommender.commands.run.worker import follow_file, make_worker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from adapter.service.server.context import WorkerContext
    from adapter.service.server.process import WsgiApp
    from recommender.commands.run.settings import RunSettings
    from recommender.configuration.model import Configuration

_log = logging.getLogger(__name__)


def run(arguments: Sequence[str]) -> None:
    """Run the command; leaves by SystemExit."""
    values = flags_or_exit(RUN, arguments, os.environ)
    configure_logs_by(values, queued=not values.boolean("validate"))
    path, configuration = configuration_or_exit(values)
    if values.boolean("validate"):
        _report(path, configuration)
    try:
        settings = run_settings(values, configuration)
    except UsageError as error:
        exit_for_usage(PROGRAM, str(error))
    for warning in values.warnings:
        _log.warning("%s", warning)
    serve_forever(settings.server, functools.partial(_make_worker, settings, path))


def _make_worker(settings: RunSettings, path: Path, context: WorkerContext) -> WsgiApp:
    return make_worker(settings, follow_file(path, context), context)


def _report(path: Path, configuration: Configuration) -> NoReturn:
    """Say whether every entry can be used, and end."""
    for refused in configuration.refused:
        for problem in refused.problems:
            print(f"{PROGRAM}: {problem}", file=sys.stderr)  # noqa: T201 - one line for each problem
    good = len(configuration.recommendations)
    print(f"{path}: {good} of {good + len(configuration.refused)} recommendations can be used")  # noqa: T201 - what was asked for
    sys.exit(1 if configuration.refused else 0)
