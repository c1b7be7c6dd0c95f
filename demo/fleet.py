"""The fleet: pods that are started and ended like those of a Deployment, controlled over a connection.

It runs in a separate process (`python -m demo.fleet`). Pods take a while to start. Each change is published twice: as
Kubernetes objects in a folder, which the adapter reads instead of a cluster, and as scrape targets for Prometheus.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from websockets.asyncio.server import ServerConnection, broadcast, serve

from demo.machine.files import replace_file
from demo.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

LABELS = {"app": "gateway"}
PUBLISH_SECONDS = 0.2
LEAVE_SECONDS = 0.6


@dataclass(slots=True)
class Fleet:
    """Pods `gateway-0`, `gateway-1`, …; the newest ends first if there are too many."""

    folder: Path
    namespace: str
    start_up_seconds: float
    limit: int
    pods: list[Pod] = field(default_factory=list)
    rounds: int = 0
    """The rounds of the HPA loop so far, passed on to the clients."""
    has_begun: bool = False
    """Whether the day has begun, passed on to the clients."""
    clients: dict[str, Any] = field(default_factory=dict)
    """The last report of the clients, passed on to all watchers."""
    _next_number: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def scale(self, replicas: int) -> None:
        """Add pods, which take time to start, or end the newest ones."""
        while len(self.pods) < replicas:
            pod = Pod(name=f"gateway-{self._next_number}", limit=self.limit)
            self._next_number += 1
            self.pods.append(pod)
            self._in_background(self._start_up(pod))
        while len(self.pods) > replicas:
            self._in_background(_terminate(self.pods.pop()))
        self.publish()

    async def start_now(self, replicas: int) -> None:
        """Start the first pods without start-up time."""
        for _ in range(replicas):
            pod = Pod(name=f"gateway-{self._next_number}", limit=self.limit)
            self._next_number += 1
            await pod.start()
            self.pods.append(pod)
        self.publish()

    async def stop(self) -> None:
        """End every pod."""
        for pod in self.pods:
            await pod.stop()

    def state(self) -> dict[str, Any]:
        """Return the state for watchers: each pod with its port, readiness and connections, and the clients' report."""
        pods = [
            {"name": pod.name, "port": pod.port, "ready": pod.ready, "open": pod.open, "refused": pod.refused}
            for pod in self.pods
        ]
        return {
            "pods": pods,
            "limit": self.limit,
            "rounds": self.rounds,
            "has_begun": self.has_begun,
            "clients": self.clients,
        }

    def publish(self) -> None:
        """Write the objects and the scrape targets, each by rename."""
        items = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": pod.name, "namespace": self.namespace, "labels": LABELS},
                "status": {"phase": "Pending" if pod.port is None else "Running"},
            }
            for pod in self.pods
        ]
        targets = [
            {"targets": [f"127.0.0.1:{pod.port}"], "labels": {"namespace": self.namespace, "pod": pod.name}}
            for pod in self.pods
            if pod.port is not None
        ]
        objects = {"apiVersion": "v1", "kind": "List", "items": items}
        replace_file(self.folder / "objects" / f"{self.namespace}.json", json.dumps(objects))
        replace_file(self.folder / "targets" / f"{self.namespace}.json", json.dumps(targets))

    async def _start_up(self, pod: Pod) -> None:
        await asyncio.sleep(self.start_up_seconds)
        if pod in self.pods:
            await pod.start()
            self.publish()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def control_port_file(folder: Path, namespace: str) -> Path:
    """Return the file that holds the port of the fleet's control connection."""
    return folder / f"{namespace}.port"


async def _terminate(pod: Pod) -> None:
    """End a pod after its clients had time to learn that it is no longer an endpoint, as with a preStop hook."""
    await asyncio.sleep(LEAVE_SECONDS)
    await pod.stop()


async def run(folder: Path, *, namespace: str, replicas: int, limit: int, start_up_seconds: float) -> None:
    """Serve the fleet until SIGTERM; the control port is written to `folder/NAMESPACE.port`."""
    fleet = Fleet(folder=folder, namespace=namespace, start_up_seconds=start_up_seconds, limit=limit)
    await fleet.start_now(replicas)
    watchers: set[ServerConnection] = set()

    async def control(connection: ServerConnection) -> None:
        watchers.add(connection)
        try:
            async for message in connection:
                order = json.loads(message)
                if "replicas" in order:
                    fleet.scale(int(order["replicas"]))
                if "begins" in order:
                    fleet.has_begun = True
                if "goes_on" in order:
                    fleet.rounds += 1
                if "clients" in order:
                    fleet.clients = order["clients"]
        finally:
            watchers.discard(connection)

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with serve(control, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        replace_file(control_port_file(folder, namespace), str(port))
        while not stopped.is_set():
            broadcast(watchers, json.dumps(fleet.state()))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), PUBLISH_SECONDS)
    await fleet.stop()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the fleet as a process."""
    parser = argparse.ArgumentParser(prog="demo.fleet", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--replicas", type=int, required=True)
    parser.add_argument("--limit", type=int, required=True)
    parser.add_argument("--start-up-seconds", type=float, required=True)
    options = parser.parse_args(arguments)
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    asyncio.run(
        run(
            options.folder,
            namespace=options.namespace,
            replicas=options.replicas,
            limit=options.limit,
            start_up_seconds=options.start_up_seconds,
        )
    )


if __name__ == "__main__":
    main()
