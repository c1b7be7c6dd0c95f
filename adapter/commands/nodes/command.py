"""`tidewatch-adapter nodes`: serves the load of nodes to Trimaran, kube-scheduler, the descheduler and people."""

from __future__ import annotations

import logging
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from adapter.commands.nodes.flags import NODES
from adapter.commands.nodes.load_watcher import with_log_level
from adapter.commands.nodes.nodes_settings import NodesSettings, nodes_settings
from adapter.commands.program import PROGRAM
from adapter.foundation.files.file_contents import FilesError
from adapter.foundation.options.logs import configure_logs_by
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.flags.program import exit_for_missing_package
from adapter.foundation.service.server.process import WsgiApp, serve_forever
from adapter.nodes.configuration.reading import SchedulingFileError
from adapter.nodes.configuration.reloader import read_scheduling_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.service.server.context import WorkerContext

_log = logging.getLogger(__name__)


def nodes(arguments: Sequence[str]) -> None:
    """Run the command, which ends by raising SystemExit."""
    values = with_log_level(flags_or_exit(NODES, arguments), os.environ)
    # The worker imports numpy; this process, which lives as long, does not.
    if find_spec("numpy") is None:
        exit_for_missing_package(PROGRAM, "nodes", "numpy")
    configure_logs_by(values, queued=True)
    try:
        settings = nodes_settings(values)
        if settings.scheduling_file is not None:
            read_scheduling_file(settings.scheduling_file)
    except SchedulingFileError as error:
        exit_for_usage(PROGRAM, *map(str, error.problems))
    except (UsageError, FilesError) as error:
        exit_for_usage(PROGRAM, str(error))
    for warning in settings.warnings:
        _log.warning("%s", warning)
    serve_forever(settings.server, lambda context: _make_worker(settings, context))


def _make_worker(settings: NodesSettings, context: WorkerContext) -> WsgiApp:
    """Return the application of the worker's process.

    Modules that only the worker needs are imported in the worker. If its parent imported them as well, each process
    would end up with its own copy, since counting references writes to the pages that the processes share.
    """
    from adapter.commands.nodes.worker import make_worker  # noqa: PLC0415 - see above

    return make_worker(settings, context)
