"""Settings of lists and watches."""

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
    """How lists and watches are made, and the effects that they use."""

    page_size: int = 500
    window_seconds: tuple[float, float] = (300.0, 600.0)
    """Each watch ends after a random time between these, so that watches spread over the API servers."""
    silence_seconds: float = 150.0
    """A watch without a byte for this long is reopened: it may be dead. Bookmarks come each minute."""
    healthy_seconds: float = 30.0
    """A watch that was open for this long resets the back-off."""
    refused_seconds: float = 10.0
    """How long cached objects are still served while a server, which may just be starting, refuses the kind."""
    resumes: bool = True
    """Whether a new watch continues from the last version. False: the objects are listed before each watch."""
    pace: Pace = UNPACED
    telemetry: WatchTelemetry = field(default_factory=NoTelemetry)
    backoff: Callable[[], Backoff] = Backoff
    uniform: Callable[[float, float], float] = random.uniform
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    wait: Callable[[Event, float], bool] = threading.Event.wait
    """Waits for the event, at most so many seconds."""
