"""The two clocks of a process, as a value that is passed to the code that needs the time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock and the monotonic clock, in seconds; measure intervals with the monotonic one."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
