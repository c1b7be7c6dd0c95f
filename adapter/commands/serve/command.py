"""`tidewatch-adapter serve`: reads the settings before a port is opened, and builds the worker after the fork."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from adapter.commands.program import PROGRAM
from adapter.commands.serve.flags import SERVE
from adapter.commands.serve.serve_settings import ServeSettings, serve_settings
from adapter.foundation.options.logs import configure_logs_by
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.service.server.process import WsgiApp, serve_forever

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.service.server.context import WorkerContext

_log = logging.getLogger(__name__)


def serve(arguments: Sequence[str]) -> None:
    """Run the command, which ends by raising SystemExit."""
    values = flags_or_exit(SERVE, arguments)
    configure_logs_by(values, queued=True)
    try:
        settings = serve_settings(values)
    except UsageError as error:
        exit_for_usage(PROGRAM, str(error))
    except StartError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)  # noqa: T201 - the one line on stderr
        sys.exit(1)
    for warning in settings.warnings:
        _log.warning("%s", warning)
    serve_forever(settings.server, lambda context: _make_worker(settings, context))


def _make_worker(settings: ServeSettings, context: WorkerContext) -> WsgiApp:
    """Return the application of the worker's process.

    Modules that only the worker needs are imported in the worker. If its parent imported them as well, each process
    would end up with its own copy, since counting references writes to the pages that the processes share.
    """
    from adapter.commands.serve.worker import make_worker  # noqa: PLC0415 - see above

    return make_worker(settings, context)
