"""The threads that answer requests, and the queue for them. For the poller thread only.

A connection has one request at a time here, but a client that sends many at once on each of many connections would fill
the queue again and again before anybody else's turn. So each request that was sent before the previous answer counts as
if it had arrived later.

Requests of known callers (`Connection.is_admitted`) come before those of unauthenticated clients, however many of
these wait. A share of the starts is left to unauthenticated clients, since a kubelet's probes are among them.

Some threads may be reserved for requests whose heads entitle them to one (`bodies`). As all threads share one
interpreter, the other requests then get only a part of the processor's time, however many there are. This limit applies
while reserved threads are in use and for a while afterwards; if nobody needs them, nothing is held back. While a
reserved thread answers, no other work is begun, for a few milliseconds at most.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from typing import TYPE_CHECKING

from adapter.foundation.time.time_share import TimeShare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import ThreadPoolExecutor
    from typing import TypeAlias

    from adapter.foundation.service.server.connections.connection import Connection

    _Waiting: TypeAlias = "tuple[float, int, Connection]"
    """The time at which a request counts as arrived, its number, and its connection."""

AHEAD_SECONDS = 0.25
"""Each request that was sent ahead counts as if it had arrived this much later than the one before it."""
MOST_AHEAD = 20
"""Limit of requests sent ahead that are counted, so that even the last of many gets its turn after some seconds."""
COMMON_SHARE = 0.1
"""Part of a core that requests without a reserved thread may take, while others need the reserved ones."""
NEEDED_SECONDS = 60.0
"""Time after a request with a reserved thread in which the next one is expected: while pods are created, kube-scheduler
asks again sooner than that."""
LONGEST_HOLD_SECONDS = 0.005
"""Time after which others get a turn even while a reserved thread answers."""
MOST_KNOWN_IN_A_ROW = 3
"""The most requests of known callers that are started in a row while unauthenticated clients wait, too."""
_BURST_SECONDS = 0.002
"""The allowance after a pause: a few small answers, so that only few threads compete with the reserved ones."""
_POLLING_SECONDS = 0.0004
"""Processor time that a request costs the poller thread, which is more than a refusal costs its own thread."""
_FIRST_ESTIMATE_SECONDS = 0.001
_WEIGHT_OF_NEWEST = 0.1
"""The weight of the newest request's cost in the mean that predicts the next one's cost."""
_QUEUED_FOR_A_THREAD = 2
"""Requests in a pool for each of its threads, so that no thread waits for the poller. Reserved threads, if there are
any, should have the interpreter rather than these."""


class RequestThreads:
    """A common pool of threads, and a pool of reserved ones."""

    def __init__(
        self,
        common: ThreadPoolExecutor,
        reserved: ThreadPoolExecutor | None,
        threads: int,
        start: Callable[[ThreadPoolExecutor, Connection], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`threads` is the size of the common pool. `start` makes a pool answer the request of a connection."""
        self._common = common
        self._reserved = reserved
        self._start = start
        self._clock = clock
        self._most = threads if reserved else threads * _QUEUED_FOR_A_THREAD
        self._charged: dict[Connection, float] = {}
        """The requests in the common pool, with the processor time charged to their share when they started."""
        self._known: list[_Waiting] = []
        self._unauthenticated: list[_Waiting] = []
        self._known_in_a_row = 0
        self._share = TimeShare(COMMON_SHARE, _BURST_SECONDS, clock=clock)
        self._estimate = _FIRST_ESTIMATE_SECONDS
        self._needed_until = -math.inf
        """The time until which requests with a reserved thread are expected."""
        self._in_reserved: set[Connection] = set()
        """The connections whose requests reserved threads are answering."""
        self._held_since: float | None = None
        """When requests without a reserved thread were first put off for a reserved one; None if they were not."""
        self._numbers = itertools.count()

    def start_first(self) -> None:
        """Start a thread of each pool, which lives as long as the process; raises RuntimeError if there is none."""
        for pool in self._pools:
            pool.submit(lambda: None)

    def submit(self, conn: Connection) -> None:
        """Let a thread answer the request of a connection, when its turn comes."""
        if self._reserved is not None and conn.is_reserved:
            self._needed_until = self._clock() + NEEDED_SECONDS
            self._in_reserved.add(conn)
            self._start(self._reserved, conn)
        else:
            due = self._clock() + AHEAD_SECONDS * min(conn.sent_ahead, MOST_AHEAD)
            heapq.heappush(self._known if conn.is_admitted else self._unauthenticated, (due, next(self._numbers), conn))
            self.start_waiting()

    def release_thread(self, conn: Connection) -> None:
        """Give the thread of an answered request to the next one."""
        if conn in self._in_reserved:
            self._in_reserved.remove(conn)
            return
        cost = conn.cost_seconds + _POLLING_SECONDS
        self._estimate += _WEIGHT_OF_NEWEST * (cost - self._estimate)
        charged = self._charged.pop(conn)
        if self.is_limited:
            self._share.spend(cost - charged)
        self.start_waiting()

    def start_waiting(self) -> None:
        """Start the requests whose turn it is, as far as there are threads and processor time for them."""
        while self.seconds_to_next_start() <= 0:
            conn = self._next()
            # Charged before its cost is known: otherwise all threads would begin at the same moment, again and again.
            self._charged[conn] = self._estimate if self.is_limited else 0.0
            self._share.spend(self._charged[conn])
            self._held_since = None
            self._start(self._common, conn)

    def seconds_to_others(self) -> float:
        """Return the seconds until work for other connections may begin: 0 unless a reserved thread is answering."""
        if not self._in_reserved:
            return 0.0
        now = self._clock()
        if self._held_since is None:
            self._held_since = now
        return max(0.0, self._held_since + LONGEST_HOLD_SECONDS - now)

    def others_had_turn(self) -> None:
        """Start waiting requests whose turn it is, and note that work was done for other connections."""
        # They start now, since none would ever start if schedulers asked all the time and a new hold began first.
        self.start_waiting()
        self._held_since = None

    def seconds_to_next_start(self) -> float:
        """Return the seconds until the share lets a waiting request start; infinity if none waits for the share."""
        if not (self._known or self._unauthenticated) or len(self._charged) >= self._most:
            return math.inf
        return max(self._share.pause_seconds(), self.seconds_to_others()) if self.is_limited else 0.0

    def _next(self) -> Connection:
        """Take the next request: a known caller's, unless it is the turn of the unauthenticated clients."""
        if self._known and not (self._unauthenticated and self._known_in_a_row >= MOST_KNOWN_IN_A_ROW):
            self._known_in_a_row += 1
            return heapq.heappop(self._known)[2]
        self._known_in_a_row = 0
        return heapq.heappop(self._unauthenticated)[2]

    @property
    def _pools(self) -> Iterable[ThreadPoolExecutor]:
        return filter(None, (self._common, self._reserved))

    @property
    def is_limited(self) -> bool:
        """Whether requests without a reserved thread get only a part of the processor's time."""
        return self._clock() < self._needed_until

    def shut_down(self) -> None:
        """Start no further requests, and do not wait for those in progress."""
        self._known.clear()
        self._unauthenticated.clear()
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
