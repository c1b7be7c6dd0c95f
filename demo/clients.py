"""The clients: real websocket connections that follow the day, each to a pod that was ready a moment ago.

They run in a separate process (`python -m demo.clients`), learn which pods are ready from the fleet's control
connection, as clients behind a Service do, and report their results over the same connection. A connection stays open
for some time and is then renewed, so that there are attempts all day; if a pod drops a connection, its client connects
again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import random
import signal
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from demo.load import RECONNECT_SECONDS, RECONNECT_SHARE, Day, DayClock, day_of

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

STEP_SECONDS = 0.1
MEAN_SESSION_SECONDS = 25.0
MESSAGE_SECONDS = 5.0
OPEN_TIMEOUT_SECONDS = 5.0
RETRY_SECONDS = 1.0
"""Time that a refused client waits before the next attempt."""
FULL_AFTER_ALL = 1013
"""The close code "try again later": several handshakes competed for a pod's last place."""


@dataclass(slots=True)
class Report:
    """The clients' results so far."""

    seconds: float = 0.0
    """Seconds since the beginning of the day."""
    wanted: int = 0
    open: int = 0
    attempted: int = 0
    refused: int = 0
    """Attempts that found a pod at its limit, no ready pod, or no answer."""
    dropped: int = 0
    """Connections that a terminated pod closed."""
    lost: int = 0
    """Connections that the failure of the network ended."""
    has_begun: bool = False
    over: bool = False


@dataclass(slots=True)
class Crowd:
    """Opens and closes connections to follow the day's load."""

    day: Day
    generator: random.Random
    report: Report = field(default_factory=Report)
    ports: list[int] = field(default_factory=list)
    """Ports of the ready pods."""
    rounds: int = 0
    """How many rounds the HPA loop has made."""
    _leaving: set[asyncio.Event] = field(default_factory=set)
    _has_failed: bool = False
    """Whether the network has already failed."""
    _opening: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def step(self, seconds: float) -> None:
        """Open or close connections to match this moment of the day."""
        self.report.seconds = seconds
        self.report.wanted = self.day.connections(seconds)
        if seconds >= self.day.reconnect_at and not self._has_failed:
            self._has_failed = True
            self._lose_connections()
        missing = self.report.wanted - len(self._leaving) - self._opening
        for _ in range(missing):
            self._opening += 1
            self._in_background(self._session())
        for _ in range(min(-missing, len(self._leaving))):
            self._leaving.pop().set()

    def _lose_connections(self) -> None:
        """End a share of the connections at once; each of their clients connects again after a time of its own."""
        for leaving in self.generator.sample(list(self._leaving), round(RECONNECT_SHARE * len(self._leaving))):
            self._leaving.discard(leaving)
            leaving.set()
            self.report.lost += 1
            self._opening += 1
            self._in_background(self._session(after_seconds=self.generator.uniform(0.0, RECONNECT_SECONDS)))

    def learn(self, state: str | bytes) -> None:
        """Process the fleet's report about its pods."""
        known = json.loads(state)
        self.ports = [pod["port"] for pod in known["pods"] if pod["ready"]]
        self.rounds = known["rounds"]
        self.report.has_begun = known["has_begun"]

    async def close(self) -> None:
        """Close all connections."""
        for leaving in self._leaving:
            leaving.set()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _session(self, after_seconds: float = 0.0) -> None:
        await asyncio.sleep(after_seconds)
        connection = await self._attempt()
        if connection is None:
            await asyncio.sleep(RETRY_SECONDS)
            self._opening -= 1
            return
        self._opening -= 1
        leaving = asyncio.Event()
        self._leaving.add(leaving)
        self.report.open += 1
        try:
            closed_by_pod = await self._talk(connection, leaving)
        finally:
            self.report.open -= 1
            self._leaving.discard(leaving)
            await connection.close()
        if closed_by_pod and connection.close_code == FULL_AFTER_ALL:
            self.report.refused += 1
        elif closed_by_pod:
            self.report.dropped += 1

    async def _attempt(self) -> ClientConnection | None:
        self.report.attempted += 1
        if not self.ports:
            self.report.refused += 1
            return None
        uri = f"ws://127.0.0.1:{self.generator.choice(self.ports)}/"
        try:
            return await connect(
                uri, compression=None, ping_interval=None, open_timeout=OPEN_TIMEOUT_SECONDS, proxy=None
            )
        except (OSError, TimeoutError, InvalidHandshake, EOFError):
            self.report.refused += 1
            return None

    async def _talk(self, connection: ClientConnection, leaving: asyncio.Event) -> bool:
        """Send messages until the session is over; return whether the pod ended it."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + self.generator.expovariate(1 / MEAN_SESSION_SECONDS)
        reading = asyncio.create_task(_read(connection))
        told = asyncio.create_task(leaving.wait())
        try:
            while not (reading.done() or told.done()) and (rest := ends - loop.time()) > 0:
                await asyncio.wait(
                    {reading, told}, timeout=min(rest, MESSAGE_SECONDS), return_when=asyncio.FIRST_COMPLETED
                )
                with contextlib.suppress(ConnectionClosed):
                    await connection.send("still here")
            return reading.done()
        finally:
            for task in (reading, told):
                task.cancel()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def run(control_port: int, day: Day) -> None:
    """Stay at night's load until the day begins, follow it to its end, and stay at night's load until SIGTERM."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    crowd = Crowd(day=day, generator=random.Random(day.seed + 1))
    async with connect(f"ws://127.0.0.1:{control_port}/", compression=None, ping_interval=None, proxy=None) as control:
        crowd.learn(await control.recv())
        learning = asyncio.create_task(_learn_pods(control, crowd))
        clock = DayClock()
        while not stopped.is_set() and not learning.done():
            if crowd.report.has_begun:
                clock.step(loop.time(), crowd.rounds)
            crowd.step(clock.seconds)
            crowd.report.over = clock.seconds >= day.seconds
            with contextlib.suppress(ConnectionClosed):
                await control.send(json.dumps({"clients": asdict(crowd.report)}))
            await asyncio.sleep(STEP_SECONDS)
        learning.cancel()
        await asyncio.gather(learning, return_exceptions=True)
        await crowd.close()


async def _read(connection: ClientConnection) -> None:
    """Read what the pod sends until the connection ends."""
    with contextlib.suppress(ConnectionClosed):
        async for _ in connection:
            pass


async def _learn_pods(control: ClientConnection, crowd: Crowd) -> None:
    async for message in control:
        crowd.learn(message)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the clients as a process."""
    parser = argparse.ArgumentParser(prog="demo.clients", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--control-port", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args(arguments)
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    asyncio.run(run(options.control_port, day_of(options.seconds, seed=options.seed)))


if __name__ == "__main__":
    main()
