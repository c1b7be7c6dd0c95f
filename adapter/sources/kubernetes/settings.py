"""How the watches of a cluster behave, in one value that is handed down to each of them."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.sources.kubernetes.telemetry import NoTelemetry
from adapter.timing.backoff import Backoff
from adapter.timing.pace import UNPACED

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from adapter.sources.kubernetes.telemetry import WatchTelemetry
    from adapter.timing.pace import Pace


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How lists and watches are made, and what they are given to work with."""

    page_size: int = 500
    window_seconds: tuple[float, float] = (300.0, 600.0)
    """A watch is asked to end after a time between these, so that watches spread over the API servers again."""
    silence_seconds: float = 150.0
    """Without a byte for this long the connection may be dead: the watch is opened anew. Bookmarks come each minute."""
    healthy_seconds: float = 30.0
    """A watch that stood this long was healthy: the next failure is the first again."""
    refused_seconds: float = 10.0
    """For how long what is known is told on while the server refuses it: a server that starts refuses at first."""
    pace: Pace = UNPACED
    telemetry: WatchTelemetry = field(default_factory=NoTelemetry)
    backoff: Callable[[], Backoff] = Backoff
    uniform: Callable[[float, float], float] = random.uniform
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    wait: Callable[[Event, float], bool] = threading.Event.wait
    """Waits for the event or so many seconds."""
