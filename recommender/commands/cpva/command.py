"""`tidewatch-recommender cpva`: a drop-in for cluster-proportional-vertical-autoscaler, in one small process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

from adapter.foundation.options.cluster import cluster_settings
from adapter.foundation.service.server.addresses import listening_socket
from adapter.foundation.service.version import program_version
from recommender.commands.cpva.flags import CPVA
from recommender.commands.cpva.settings import CpvaSettings, settings_of
from recommender.commands.one_process.port import Port
from recommender.commands.one_process.start import run_drop_in
from recommender.commands.program import METRICS_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.foundation.service.flags.table import FlagValues


def cpva(arguments: Sequence[str]) -> NoReturn:
    """Run the command and end the process. Raises SystemExit only if the flags or --help end it before the start."""
    run_drop_in(CPVA, arguments, _port_and_run)


def _port_and_run(values: FlagValues) -> tuple[Port, Callable[[], int]]:
    settings = settings_of(values, os.environ)
    address = values.address("plain-bind-address")
    port = Port(*(() if address is None else (listening_socket(address),)))
    return port, lambda: _run(values, settings, port)


def _run(values: FlagValues, settings: CpvaSettings, port: Port) -> int:
    """Load and start everything else; return the exit status. Raises UsageError."""
    # These modules are loaded when the port already answers (`port`).
    from adapter.foundation.sources.kubernetes.writing import ObjectClient  # noqa: PLC0415 - likewise
    from recommender.commands.cpva.followed_config import FollowedConfig  # noqa: PLC0415 - likewise
    from recommender.commands.cpva.poll import CpvaPoll  # noqa: PLC0415 - likewise
    from recommender.commands.one_process.process import OneProcess  # noqa: PLC0415 - likewise
    from recommender.commands.vertical.polls import CounterFamily, Polls, run_polls  # noqa: PLC0415 - likewise
    from recommender.commands.vertical.sized_object import api_client  # noqa: PLC0415 - likewise

    client = api_client(cluster_settings(values))
    poll = CpvaPoll(settings, FollowedConfig(settings.defaults, settings.config_file), client, ObjectClient(client))
    counter = CounterFamily(f"{METRICS_PREFIX}_polls_total", "Polls of a drop-in that resizes containers, by outcome.")
    process = OneProcess(port, program_version())
    return run_polls(process, Polls(poll.poll, counter), settings.poll_seconds, {})
