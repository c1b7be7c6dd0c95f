"""The time that accepting connections and handshakes may take while other callers need reserved threads.

Who comes beyond it waits in the kernel's queue, in order of arrival. For the poller thread only.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from adapter.foundation.time.time_share import TimeShare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NEWCOMERS_SHARE = 0.25
"""Part of a core."""
_BURST_SECONDS = 0.1
"""About 100 handshakes."""


class Newcomers:
    """The share of the time for connections whose clients have not asked for anything yet."""

    def __init__(
        self,
        is_limited: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
        processor_time: Callable[[], float] = time.thread_time,
    ) -> None:
        """`is_limited` returns whether others need reserved threads now."""
        self._is_limited = is_limited
        self._processor_time = processor_time
        self._share = TimeShare(NEWCOMERS_SHARE, _BURST_SECONDS, clock=clock)

    def pause_seconds(self) -> float:
        """Return the seconds for which nothing may be accepted; 0 if something may be accepted now."""
        return self._share.pause_seconds() if self._is_limited() else 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Take the processor time of the body from the share."""
        began = self._processor_time()
        try:
            yield
        finally:
            if self._is_limited():
                self._share.spend(self._processor_time() - began)
