"""Limits the poller thread's time for some kinds of work while other callers need reserved threads.

Handshakes beyond the limit wait their turn (`address_turns`), and connections without a reserved thread are not polled
(`worker`). Connections that are not accepted wait in the kernel's queue, in order of arrival; accepting is
cheap, so this takes thousands of connections a second. For the poller thread only.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.time.time_share import TimeShare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HANDSHAKES_SHARE = 0.2
"""Part of a core for handshakes."""
ACCEPTING_SHARE = 0.1
"""Part of a core for accepting connections."""
OTHERS_SHARE = 0.1
"""Part of a core for what clients without a reserved thread send and read: heads, bodies and answers."""
_BURST_SECONDS = 0.1
"""The time of about 100 handshakes."""


@dataclass(slots=True)
class Counted:
    """The processor time of a piece of work, known when it has ended."""

    seconds: float = 0.0


class LimitedWork:
    """A share of the time for one kind of work of the poller thread, which is limited while others need the core."""

    def __init__(
        self,
        is_limited: Callable[[], bool],
        share: float,
        clock: Callable[[], float] = time.monotonic,
        processor_time: Callable[[], float] = time.thread_time,
    ) -> None:
        """`is_limited` returns whether others need reserved threads now; `share` is the part of a core then."""
        self._is_limited = is_limited
        self._processor_time = processor_time
        self._share = TimeShare(share, _BURST_SECONDS, clock=clock)

    def pause_seconds(self) -> float:
        """Return the seconds for which none of this work may be done; 0 if some may be done now."""
        return self._share.pause_seconds() if self._is_limited() else 0.0

    @contextmanager
    def counted(self) -> Iterator[Counted]:
        """Subtract the processor time of the body from the share; the yielded value holds that time after the body."""
        began, counted = self._processor_time(), Counted()
        try:
            yield counted
        finally:
            counted.seconds = self._processor_time() - began
            if self._is_limited():
                self._share.spend(counted.seconds)
