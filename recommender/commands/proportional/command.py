"""`tidewatch-recommender proportional`: a drop-in for cluster-proportional-autoscaler, in one small process."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, NoReturn

from adapter.foundation.options.cluster import cluster_settings
from adapter.foundation.options.version import program_version
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.service.runtime.garbage_collector import settle_collector
from adapter.foundation.service.server.addresses import Address, listening_socket
from recommender.commands.one_process.port import Port
from recommender.commands.one_process.start import ENDINGS, refuse, run_to_the_end
from recommender.commands.program import PROGRAM
from recommender.commands.proportional.configuration import configuration_of
from recommender.commands.proportional.flags import PROPORTIONAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration


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
        refuse(str(error))
    port = Port(listener)
    run_to_the_end(values, port, lambda: _run(values, configuration, port, page))


def _run(values: FlagValues, configuration: Configuration, port: Port, page_listener: socket.socket | None) -> int:
    """Load and start everything else; return the exit status. Raises StartError."""
    # The port answers by now: loading takes longer than the kubelet waits for it, at a few hundredths of a core.
    from recommender.commands.one_process.process import OneProcess  # noqa: PLC0415 - see above
    from recommender.commands.proportional.assembly import ProportionalOptions, start  # noqa: PLC0415 - likewise

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
    """Return the socket on which the page is served; None if no flag asks for the page. Raises StartError."""
    if not values.given & {"port", "bind-address"}:
        return None
    return listening_socket(Address(values.text("bind-address"), values.integer("port")))
