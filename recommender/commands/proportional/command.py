"""`tidewatch-recommender proportional`: a drop-in for cluster-proportional-autoscaler."""

from __future__ import annotations

import functools
import logging
import os
import socket
from typing import TYPE_CHECKING

from adapter.options.clients import ObjectSettings
from adapter.options.cluster import cluster_settings
from adapter.options.logs import configure_logs_by
from adapter.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.service.server.process import serve_forever
from recommender.commands.program import PROGRAM
from recommender.commands.proportional.configuration import configuration_of
from recommender.commands.proportional.flags import PROPORTIONAL
from recommender.commands.proportional.poll_state import PollState
from recommender.commands.proportional.target_notes import TargetNotes
from recommender.commands.run.settings import RunSettings, server_options
from recommender.commands.run.worker import Watchers, make_worker
from recommender.running.configuration_sources import FixedConfiguration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.service.flags.table import FlagValues
    from adapter.service.server.context import WorkerContext
    from adapter.service.server.process import WsgiApp
    from recommender.configuration.model import Configuration
    from recommender.decisions.record import Record

_log = logging.getLogger(__name__)


def proportional(arguments: Sequence[str]) -> None:
    """Run the command; leaves by SystemExit."""
    values = flags_or_exit(PROPORTIONAL, arguments, os.environ)
    configure_logs_by(values, queued=True)
    try:
        configuration = configuration_of(values, os.environ)
        settings = _settings(values, configuration)
    except UsageError as error:
        exit_for_usage(PROGRAM, str(error))
    for warning in values.warnings:
        _log.warning("%s", warning)
    most_failures = values.integer("max-sync-failures")
    serve_forever(settings.server, functools.partial(_make_worker, settings, configuration, most_failures))


def _settings(values: FlagValues, configuration: Configuration) -> RunSettings:
    return RunSettings(
        server=server_options(values, configuration.listen),
        objects=ObjectSettings(files=None, cluster=cluster_settings(values)),
        dry_run=values.boolean("dry-run"),
        pod=socket.gethostname(),
        namespace=configuration.leader_election.namespace,
        stores_memories=False,
    )


def _make_worker(
    settings: RunSettings, configuration: Configuration, most_failures: int, context: WorkerContext
) -> WsgiApp:
    state = PollState(most_failures, context.fail)
    context.add_path("/last-poll", state.answer)
    notes = TargetNotes()

    def polled(records: Sequence[Record]) -> None:
        state.polled(records)
        notes.polled(records)

    watchers = Watchers(polled=polled, scaled=state.scaled)
    return make_worker(settings, FixedConfiguration(configuration), context, watchers)
