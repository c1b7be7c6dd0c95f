"""The unauthenticated clients of `unauthenticated_clients`, and the baseline server that they connect to.

These processes share a core with the measuring client, and only get time that nobody else wants there.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from benchmarks.cluster_stage import CHECKOUT
from benchmarks.cores import on
from benchmarks.nodes_stage import START_SECONDS
from benchmarks.unauthenticated_load import Delivered
from demo.machine.ports import answers, free_port
from demo.machine.processes import start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.nodes_stage import NodesStage
    from benchmarks.report import Row
    from benchmarks.unauthenticated_load import UnauthenticatedPlan
    from demo.machine.processes import ManagedProcess

_SETTLE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RunningClients:
    """A process of unauthenticated clients."""

    process: ManagedProcess

    def delivered(self) -> Delivered | None:
        """Return what they have delivered according to their last report; None if there is none yet."""
        reports = self.process.log_path.read_bytes().rpartition(b"\n")[0].splitlines()
        return msgspec.json.decode(reports[-1], type=Delivered) if reports else None


@contextmanager
def running_clients(stage: NodesStage, plan: UnauthenticatedPlan) -> Iterator[RunningClients]:
    """Let unauthenticated clients connect, and wait until they have."""
    file = stage.folder / "unauthenticated.json"
    file.write_bytes(msgspec.json.encode(plan))
    command = [sys.executable, "-m", "benchmarks.unauthenticated_load", str(file)]
    with on(stage.cores.others):
        process = start(command, name="unauthenticated", log_path=stage.folder / "unauthenticated.log", folder=CHECKOUT)
    with process:
        clients = RunningClients(process)
        process.wait_until(lambda: clients.delivered() is not None, START_SECONDS)
        time.sleep(_SETTLE_SECONDS)
        yield clients


@contextmanager
def bare_listener(stage: NodesStage) -> Iterator[tuple[int, int]]:
    """Run the baseline server; yield its ports."""
    ports = free_port(), free_port()
    command = [sys.executable, "-m", "benchmarks.bare_listener", *map(str, ports)]
    with on(stage.cores.others):
        process = start(command, name="bare listener", log_path=stage.folder / "bare_listener.log", folder=CHECKOUT)
    with process:
        process.wait_until(lambda: all(answers(f"http://127.0.0.1:{port}/") for port in ports), START_SECONDS)
        yield ports


def delivery(before: Delivered | None, after: Delivered | None) -> Row:
    """Return the columns of what the clients delivered between two reports; None in each without clients."""
    seconds = after.at - before.at if before and after else 0.0
    if before is None or after is None or not seconds:
        return dict.fromkeys(_COLUMNS)
    found = (
        after.connections,
        after.pending,
        *(
            round(count / seconds, 1)
            for count in (
                after.requests - before.requests,
                after.answers - before.answers,
                after.bodies - before.bodies,
                after.scrapes - before.scrapes,
            )
        ),
    )
    return dict(zip(_COLUMNS, found, strict=True))


_COLUMNS = (
    "unauthenticated_connected",
    "unauthenticated_pending",
    "unauthenticated_requests_per_second",
    "unauthenticated_answers_per_second",
    "unauthenticated_bodies_per_second",
    "unauthenticated_scrapes_per_second",
)
