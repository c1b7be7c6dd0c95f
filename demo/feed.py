"""The demo's connection to its fleet: the fleet's last report, and commands to it."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_STATE_SECONDS = 10.0


class FleetFeed:
    """Holds the newest state of the fleet, and sends it commands."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._state: dict[str, Any] = json.loads(connection.recv(timeout=FIRST_STATE_SECONDS))
        self._thread = threading.Thread(target=self._listen, name="fleet-feed", daemon=True)
        self._thread.start()

    @property
    def state(self) -> dict[str, Any]:
        """Return the fleet's last report."""
        return self._state

    @property
    def alive(self) -> bool:
        """Whether the fleet is still connected."""
        return self._thread.is_alive()

    def scale(self, replicas: int) -> None:
        """Request this many pods."""
        self._connection.send(json.dumps({"replicas": replicas}))

    def begin(self) -> None:
        """Let the clients' day begin; until then it is night."""
        self._connection.send(json.dumps({"begins": True}))

    def go_on(self) -> None:
        """Let the clients' day advance, because a round of the HPA loop is over (`demo.load.DayClock`)."""
        self._connection.send(json.dumps({"goes_on": True}))

    def _listen(self) -> None:
        try:
            for message in self._connection:
                self._state = json.loads(message)
        except ConnectionClosed:
            return


@contextmanager
def fleet_feed(control_port: int) -> Iterator[FleetFeed]:
    """Yield the connection to the fleet that listens on this port."""
    with connect(f"ws://127.0.0.1:{control_port}/", compression=None, ping_interval=None, proxy=None) as connection:
        yield FleetFeed(connection)
