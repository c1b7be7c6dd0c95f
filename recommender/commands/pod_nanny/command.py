"""`tidewatch-recommender pod-nanny`: a drop-in for addon-resizer, in one small process."""

from __future__ import annotations

import logging
import os
import socket
from typing import TYPE_CHECKING, Final, NoReturn

from adapter.foundation.options.cluster import cluster_settings
from adapter.foundation.service.server.addresses import listening_socket
from adapter.foundation.service.server.plain_port.plain_answers import PlainAnswer
from adapter.foundation.service.version import program_version
from recommender.commands.one_process.port import Port
from recommender.commands.one_process.start import run_drop_in
from recommender.commands.pod_nanny.flags import POD_NANNY
from recommender.commands.pod_nanny.settings import NannySettings, addresses_of, settings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.foundation.service.flags.table import FlagValues
    from recommender.commands.vertical.polls import Polls

_log = logging.getLogger(__name__)

HEALTH: Final = "/health-check"
_MISSED_POLLS: Final = 5
"""As in addon-resizer, the process counts as hanging if no poll has ended for this many poll periods."""
_LEAST_IDLE_SECONDS: Final = 60.0
"""The minimum of that time: an unresponsive API server takes longer than five short polls, and no restart helps."""


def pod_nanny(arguments: Sequence[str]) -> NoReturn:
    """Run the command and end the process. Raises SystemExit only if the flags or --help end it before the start."""
    run_drop_in(POD_NANNY, arguments, _port_and_run)


def _port_and_run(values: FlagValues) -> tuple[Port, Callable[[], int]]:
    settings = settings_of(values, os.environ)
    port = Port(*map(listening_socket, addresses_of(values)), liveness=HEALTH)
    return port, lambda: _run(values, settings, port)


def _run(values: FlagValues, settings: NannySettings, port: Port) -> int:
    """Load and start everything else; return the exit status. Raises UsageError."""
    # These modules are loaded when the port already answers (`port`).
    from adapter.foundation.sources.kubernetes.writing import ObjectClient  # noqa: PLC0415 - likewise
    from recommender.commands.one_process.process import OneProcess  # noqa: PLC0415 - likewise
    from recommender.commands.pod_nanny.followed_parameters import followed_parameters  # noqa: PLC0415 - likewise
    from recommender.commands.pod_nanny.leading import fence_of_leader  # noqa: PLC0415 - likewise
    from recommender.commands.pod_nanny.poll import NannyPoll  # noqa: PLC0415 - likewise
    from recommender.commands.pod_nanny.resized_container import WardClient  # noqa: PLC0415 - likewise
    from recommender.commands.vertical.polls import CounterFamily, Polls, run_polls  # noqa: PLC0415 - likewise
    from recommender.commands.vertical.sized_object import api_client  # noqa: PLC0415 - likewise

    client = api_client(cluster_settings(values))
    objects = ObjectClient(client)
    process = OneProcess(port, program_version())
    fence = None
    if settings.lease is not None:
        namespace = settings.ward.deployment.namespace
        fence = fence_of_leader(process, objects, namespace, settings.lease, socket.gethostname())
    if settings.parameters.base_storage:
        _log.warning("--storage: no API server takes the resource `storage` of a container: expect refused patches")
    ward = WardClient(client, objects, settings.ward, fence)
    poll = NannyPoll(settings, followed_parameters(settings, objects), client, ward)
    counter = CounterFamily("addon_resizer_execution_outcome", "Polls by their outcome, named as by addon-resizer.")
    polls = Polls(poll.poll, counter)
    return run_polls(process, polls, settings.poll_seconds, {HEALTH: lambda: _health(polls, settings.poll_seconds)})


def _health(polls: Polls, poll_seconds: float) -> PlainAnswer:
    """Return the answer to a health check: 500 if no poll has ended for too long."""
    idle, most = polls.idle_seconds(), max(_LEAST_IDLE_SECONDS, _MISSED_POLLS * poll_seconds)
    if idle > most:
        return PlainAnswer(500, f"the last poll ended {idle:.0f} s ago, which is more than {most:g} s\n".encode())
    return PlainAnswer(200, b"OK")
