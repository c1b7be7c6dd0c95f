"""A steady stream of requests beside a test; each is kept with its time and what was wrong with its answer."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import urllib3.exceptions

from tests.e2e.support.plain_client import CONNECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.controlplane.client import Reply

_LONGEST_WORDS: Final = 160


@dataclass(frozen=True, slots=True)
class Sent:
    """One request. Times are seconds of the monotonic clock."""

    start: float
    end: float
    wrong: str | None
    """What was wrong with the answer; None for a right one."""


class SteadyLoad:
    """Requests at an even rate; a slow answer does not delay other requests while there are threads."""

    def __init__(self, ask: Callable[[], Reply], wrong_with: Callable[[Reply], str | None], per_second: float) -> None:
        """`ask` is called from many threads; `wrong_with` returns why an answer is not right."""
        self._ask = ask
        self._wrong_with = wrong_with
        self._per_second = per_second
        self._ended = threading.Event()
        self._sent: list[Sent] = []
        self._start = time.monotonic()

    @property
    def sent(self) -> list[Sent]:
        """Return the requests that were answered or have failed, ordered by their start."""
        return sorted(self._sent, key=lambda one: one.start)

    @property
    def failures(self) -> list[Sent]:
        """Return the requests without a right answer."""
        return [one for one in self.sent if one.wrong]

    def right_since(self, moment: float) -> int:
        """Return the number of right answers to requests that began after this moment."""
        return sum(1 for one in self.sent if one.start > moment and not one.wrong)

    def report(self, origin: float | None = None) -> str:
        """Return in one line how many requests failed, how, and in which seconds after `origin` or the start."""
        begin = self._start if origin is None else origin
        if not self.failures:
            return f"{len(self.sent)} requests, none failed"
        first, last = self.failures[0].start - begin, self.failures[-1].end - begin
        kinds = Counter((one.wrong or "")[:_LONGEST_WORDS] for one in self.failures)
        how = "; ".join(f"{count} times {wrong}" for wrong, count in kinds.most_common(3))
        return f"{len(self.sent)} requests, {len(self.failures)} failed from {first:.1f} s to {last:.1f} s: {how}"

    def run(self, worker: int, workers: int) -> None:
        """Send every n-th request at its time, until `stop` is called."""
        number = worker
        while not self._ended.wait(max(0.0, self._start + number / self._per_second - time.monotonic())):
            self._send()
            number += workers

    def stop(self) -> None:
        """Stop sending requests."""
        self._ended.set()

    def _send(self) -> None:
        start = time.monotonic()
        try:
            wrong = self._wrong_with(self._ask())
        except (urllib3.exceptions.HTTPError, ValueError, LookupError) as e:
            wrong = f"{type(e).__name__}: {e}"
        self._sent.append(Sent(start, time.monotonic(), wrong))


@contextmanager
def steady_load(
    ask: Callable[[], Reply], wrong_with: Callable[[Reply], str | None], per_second: float
) -> Iterator[SteadyLoad]:
    """Send requests while the block runs; after it, all of them have ended."""
    load = SteadyLoad(ask, wrong_with, per_second)
    threads = [
        threading.Thread(target=load.run, args=(worker, CONNECTIONS), name=f"load {worker}", daemon=True)
        for worker in range(CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        load.stop()
        for thread in threads:
            thread.join()
