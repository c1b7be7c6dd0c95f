"""The two clocks of a process, handed to whoever needs the time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Clock:
    """Both clocks, in seconds: intervals are measured by the one that never jumps."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
