"""`tidewatch-recommender proportional`: a drop-in for cluster-proportional-autoscaler, in one small process."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, NoReturn

from adapter.foundation.options.cluster import cluster_settings
from adapter.foundation.options.logs import configure_logs_by
from adapter.foundation.options.version import program_version
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.service.runtime.garbage_collector import settle_collector
from adapter.foundation.service.runtime.heap import settle_heap
from adapter.foundation.service.server.addresses import Address, listening_socket
from recommender.commands.program import PROGRAM
from recommender.commands.proportional.configuration import configuration_of
from recommender.commands.proportional.flags import PROPORTIONAL
from recommender.commands.proportional.port import Port

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration

_log = logging.getLogger(__name__)

ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


def proportional(arguments: Sequence[str]) -> NoReturn:
    """Run the command; leaves by SystemExit."""
    values = flags_or_exit(PROPORTIONAL, arguments, os.environ)
    try:
        configuration = configuration_of(values, os.environ)
        listener = listening_socket(values.address("plain-bind-address") or Address("", 8080))
        page = _page_listener(values)
    except UsageError as error:
        exit_for_usage(PROGRAM, str(error))
    except StartError as error:
        _refuse(str(error))
    # Threads inherit what is blocked, so this comes before the first of them.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    settle_heap()
    configure_logs_by(values, queued=True)
    port = Port(listener)
    port.start()
    for warning in values.warnings:
        _log.warning("%s", warning)
    try:
        status = _run(values, configuration, port, page)
    except StartError as error:
        _refuse(str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, a process that cannot work must not answer that it is well
        _log.debug("the start failed", exc_info=error)
        _refuse(f"cannot start: {type(error).__name__}: {error}")
    # Here, because the interpreter would take what they need away from threads that still wait for the API server.
    logging.shutdown()
    os._exit(status)


def _run(values: FlagValues, configuration: Configuration, port: Port, page_listener: socket.socket | None) -> int:
    """Load and start everything else; return the exit status. Raises StartError."""
    # The port answers by now: loading takes longer than the kubelet waits for it, at a few hundredths of a core.
    from recommender.commands.proportional.assembly import ProportionalOptions, start  # noqa: PLC0415 - likewise
    from recommender.commands.proportional.process import OneProcess  # noqa: PLC0415 - see above

    process = OneProcess(port, program_version(), ENDINGS)
    options = ProportionalOptions(
        cluster=cluster_settings(values),
        dry_run=values.boolean("dry-run"),
        most_failures=values.integer("max-sync-failures"),
        pod=socket.gethostname(),
    )
    if page_listener is None:
        start(options, configuration, process)
    else:
        from adapter.foundation.web.hosts import AllowedHosts  # noqa: PLC0415 - only where it is asked for
        from recommender.commands.proportional.page import Page  # noqa: PLC0415 - likewise

        own = values.text("bind-address")
        try:
            hosts = AllowedHosts((*values.texts("allowed-hosts"), own) if own else values.texts("allowed-hosts"))
        except ValueError as error:
            raise StartError(f"--allowed-hosts: {error}") from error
        page = Page(page_listener, hosts, configuration.state, process)
        page.start(start(options, configuration, process, page.history))
    settle_collector()
    return process.run()


def _page_listener(values: FlagValues) -> socket.socket | None:
    """Return where the page is served; None if no flag asks for it. Raises StartError."""
    if not values.given & {"port", "bind-address"}:
        return None
    return listening_socket(Address(values.text("bind-address"), values.integer("port")))


def _refuse(message: str) -> NoReturn:
    # One write, because the thread that writes the log must not come between the line and its end.
    sys.stderr.write(f"{PROGRAM}: {message}\n")
    sys.stderr.flush()
    logging.shutdown()
    os._exit(1)
