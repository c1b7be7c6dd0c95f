"""`tidewatch-recommender run`: decides repeatedly until it is stopped."""

from __future__ import annotations

import functools
import logging
import sys
from typing import TYPE_CHECKING, NoReturn

from adapter.foundation.documents.tree import problem_lines
from adapter.foundation.options.logs import configure_logs_by
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.server.process import WsgiApp, serve_forever
from recommender.commands.configuration_file import configuration_or_exit
from recommender.commands.program import PROGRAM
from recommender.commands.run.flags import RUN
from recommender.commands.run.run_settings import RunSettings, run_settings
from recommender.commands.run.worker import follow_file, make_worker
from recommender.kinds.table import kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from adapter.foundation.service.server.context import WorkerContext
    from recommender.configuration.recommender_configuration import Configuration

_log = logging.getLogger(__name__)


def run(arguments: Sequence[str]) -> None:
    """Run the command. Always raises SystemExit."""
    values = flags_or_exit(RUN, arguments)
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
    """Report whether every entry can be used, and exit."""
    for line in problem_lines(configuration.problems):
        print(f"{PROGRAM}: {line}", file=sys.stderr)  # noqa: T201 - one line for each problem
    good = len(configuration.recommendations)
    usable = f"{good} of {good + len(configuration.refused)} recommendations can be used"
    # Conflicting entries can otherwise be used, so their number alone would contradict the status.
    left = f"; problems to correct: {len(configuration.problems)}" if configuration.problems else ""
    for each in configuration.recommendations:
        for remark in kind_of(each.policy.type).remarks(each.subject):
            print(f"{path}:{each.line}: recommendation {each.policy.name}: {remark}")  # noqa: T201 - the output of the command
    print(f"{path}: {usable}{left}")  # noqa: T201 - the output of the command
    sys.exit(1 if configuration.problems else 0)
