"""The product with a watch on its interpreter: `python -m benchmarks.watched_adapter FLAGS`.

It takes the place of `tidewatch-adapter serve FLAGS`. A thread of the serving process wakes every millisecond and
records how late it was, as a request would have been: another thread had the interpreter, or the process lost the
processor. The processor time that the process took meanwhile shows which of the two it was. Collections of the garbage
collector are timed as well. The worst values of each second are written to the file in TIDEWATCH_WATCH_FILE, one line a
second. Everything else is the product's own.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from adapter.commands.serve.flags import SERVE
from adapter.commands.serve.serve_settings import serve_settings
from adapter.commands.serve.worker import make_worker
from adapter.foundation.options.logs import configure_logs_by
from adapter.foundation.service.flags.parsing import flags_or_exit
from adapter.foundation.service.server.process import serve_forever

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.commands.serve.serve_settings import ServeSettings
    from adapter.foundation.service.server.context import WorkerContext
    from adapter.foundation.service.server.process import WsgiApp

WATCH_FILE = "TIDEWATCH_WATCH_FILE"
_TICK_SECONDS = 0.001
_LINE_SECONDS = 1.0


class Second(msgspec.Struct, frozen=True, kw_only=True):
    """The observations of about one second."""

    at: float
    """The end of the second, in monotonic seconds, which all processes of a machine share."""
    pause_ms: float
    """The longest time by which the thread was late."""
    held_ms: float
    """The longest part of such a delay in which the process itself was at work."""
    collection_ms: float
    """The duration of the longest garbage collection."""


class Watch:
    """Watches the process that it runs in."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._collection_began = 0.0
        self._longest_collection = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Begin, on a thread of its own."""
        gc.callbacks.append(self._collected)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()
        gc.callbacks.remove(self._collected)

    def _run(self) -> None:
        with self._file.open("wb") as lines:
            line_at = time.monotonic() + _LINE_SECONDS
            pause = held = 0.0
            while not self._over.is_set():
                began, worked = time.monotonic(), time.process_time()
                time.sleep(_TICK_SECONDS)
                now = time.monotonic()
                late = now - began - _TICK_SECONDS
                pause, held = max(pause, late), max(held, min(late, time.process_time() - worked))
                if now >= line_at:
                    lines.write(self._line(now, pause, held))
                    lines.flush()
                    line_at, pause, held = now + _LINE_SECONDS, 0.0, 0.0

    def _line(self, now: float, pause: float, held: float) -> bytes:
        collection, self._longest_collection = self._longest_collection, 0.0
        seen = Second(at=now, pause_ms=1000 * pause, held_ms=1000 * held, collection_ms=1000 * collection)
        return msgspec.json.encode(seen) + b"\n"

    def _collected(self, phase: str, _info: dict[str, int]) -> None:
        now = time.monotonic()
        if phase == "start":
            self._collection_began = now
        else:
            self._longest_collection = max(self._longest_collection, now - self._collection_began)


def seconds_of(file: Path) -> Sequence[Second]:
    """Return the seconds that a watch has recorded so far."""
    lines = file.read_bytes().rpartition(b"\n")[0].splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=Second) for line in lines]


def make_watched_worker(settings: ServeSettings, file: Path, context: WorkerContext) -> WsgiApp:
    """Build the product's worker, and start a watch beside it."""
    Watch(file).start()
    return make_worker(settings, context)


def main() -> None:
    """Serve until ended; the flags are those of `tidewatch-adapter serve`."""
    values = flags_or_exit(SERVE, sys.argv[1:])
    configure_logs_by(values, queued=True)
    settings = serve_settings(values)
    serve_forever(settings.server, functools.partial(make_watched_worker, settings, Path(os.environ[WATCH_FILE])))


if __name__ == "__main__":
    main()
