"""Limits how much time the poller thread spends on some kinds of work while callers need reserved threads.

Beyond the limits, handshakes wait for their turn (`AddressTurns`), connections without a reserved thread are not
polled (`worker`), and new connections wait in the kernel's queue in order of arrival. Accepting is cheap, so that
happens only at thousands of connections a second. For the poller thread only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from adapter.foundation.time.time_share import TimeShare

HANDSHAKES_SHARE = 0.2
"""Part of a core for handshakes."""
ACCEPTING_SHARE = 0.1
"""Part of a core for accepting connections."""
OTHERS_SHARE = 0.1
"""Part of a core for the heads, bodies and answers of connections without a reserved thread."""
_BURST_SECONDS = 0.1
"""Processor time that may be used at once after a pause: about 100 handshakes."""


@dataclass(slots=True)
class Counted:
    """The processor time of a piece of work, known when it has ended."""

    seconds: float = 0.0


class LimitedWork:
    """The poller thread's time for one kind of work, limited to a share of a core while others need the core."""

    def __init__(
        self,
        is_limited: Callable[[], bool],
        share: float,
        clock: Callable[[], float] = time.monotonic,
        processor_time: Callable[[], float] = time.thread_time,
    ) -> None:
        """`is_limited` returns whether others need reserved threads; while they do, the work gets `share` of a core."""
        self._is_limited = is_limited
        self._processor_time = processor_time
        self._share = TimeShare(share, _BURST_SECONDS, clock=clock)

    def pause_seconds(self) -> float:
        """Return the seconds until some of this work may be done; 0 if it may be done now."""
        return self._share.pause_seconds() if self._is_limited() else 0.0

    @contextmanager
    def count_time(self) -> Iterator[Counted]:
        """Charge the block's processor time to the share; the yielded value has that time when the block has ended."""
        began, counted = self._processor_time(), Counted()
        try:
            yield counted
        finally:
            counted.seconds = self._processor_time() - began
            if self._is_limited():
                self._share.spend(counted.seconds)
