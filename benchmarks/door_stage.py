"""The strangers of `closed_doors`, each kind in its process, and the floor that they connect to.

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
from benchmarks.door_strangers import Delivered
from benchmarks.nodes_stage import START_SECONDS
from demo.machine.ports import answers, free_port
from demo.machine.processes import start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.door_strangers import StrangersPlan
    from benchmarks.nodes_stage import NodesStage
    from benchmarks.report import Row
    from demo.machine.processes import ManagedProcess

_SETTLE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RunningStrangers:
    """A process of strangers."""

    process: ManagedProcess

    def delivered(self) -> Delivered | None:
        """Return what they have delivered according to their last report; None if there is none yet."""
        reports = self.process.log_path.read_bytes().rpartition(b"\n")[0].splitlines()
        return msgspec.json.decode(reports[-1], type=Delivered) if reports else None


@contextmanager
def running_strangers(stage: NodesStage, plan: StrangersPlan) -> Iterator[RunningStrangers]:
    """Let strangers connect, and wait until they have."""
    file = stage.folder / "strangers.json"
    file.write_bytes(msgspec.json.encode(plan))
    command = [sys.executable, "-m", "benchmarks.door_strangers", str(file)]
    with on(stage.cores.others):
        process = start(command, name="strangers", log_path=stage.folder / "strangers.log", folder=CHECKOUT)
    with process:
        strangers = RunningStrangers(process)
        process.wait_until(lambda: strangers.delivered() is not None, START_SECONDS)
        time.sleep(_SETTLE_SECONDS)
        yield strangers


@contextmanager
def bare_door(stage: NodesStage) -> Iterator[tuple[int, int]]:
    """Run the floor; yield its ports."""
    ports = free_port(), free_port()
    command = [sys.executable, "-m", "benchmarks.bare_door", *map(str, ports)]
    with on(stage.cores.others):
        process = start(command, name="bare door", log_path=stage.folder / "bare_door.log", folder=CHECKOUT)
    with process:
        process.wait_until(lambda: all(answers(f"http://127.0.0.1:{port}/") for port in ports), START_SECONDS)
        yield ports


def delivery(before: Delivered | None, after: Delivered | None) -> Row:
    """Return the columns of what strangers delivered between two reports; None in each without strangers."""
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
    "strangers_connected",
    "strangers_pending",
    "strangers_requests_per_second",
    "strangers_answers_per_second",
    "strangers_bodies_per_second",
    "strangers_scrapes_per_second",
)
