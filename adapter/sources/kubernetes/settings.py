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
    """Times and limits of lists and watches, and the effects that they use."""

    page_size: int = 500
    window_seconds: tuple[float, float] = (300.0, 600.0)
    """Shortest and longest duration of a watch; random, so that watches spread over the API servers."""
    silence_seconds: float = 150.0
    """Time without a byte after which a watch is reopened. Bookmarks arrive each minute."""
    healthy_seconds: float = 30.0
    """Time for which a watch must be open to reset the back-off."""
    refused_seconds: float = 10.0
    """How long cached objects are still served while a server, which may just be starting, refuses the kind."""
    resumes: bool = True
    """Whether a new watch continues from the last version; otherwise, each watch begins with a list."""
    pace: Pace = UNPACED
    telemetry: WatchTelemetry = field(default_factory=NoTelemetry)
    backoff: Callable[[], Backoff] = Backoff
    uniform: Callable[[float, float], float] = random.uniform
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    wait: Callable[[Event, float], bool] = threading.Event.wait
    """Waits for the event, for at most this many seconds."""
