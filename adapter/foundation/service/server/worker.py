"""gunicorn's threaded worker, changed so that slow clients cannot occupy a thread.

In the stock worker, request threads perform handshakes, read heads and write answers, so a few silent clients stop the
service. Here the poller thread does this for all connections (`advancing`), with a total deadline for each stage. The
request threads get complete heads, and leave what a socket does not accept of an answer in an outbox (`outgoing`). If
there are too many connections, those that linger after their answer are closed first, then unfinished ones, then the
slowest readers, then the longest idle ones.

Connections that come first, such as kube-scheduler's, are polled by the main poller. All others have a second poller,
which the main one watches only when it is their turn, so that they cost nothing at other times.

Written against gunicorn 27.0.1, whose request handling, thread pool and signals are used.
"""

# gunicorn has no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import selectors
import signal
import time
from operator import attrgetter
from typing import Any

from adapter.foundation.service.server.accepting import TURN_SECONDS
from adapter.foundation.service.server.advancing import AdvancingWorker
from adapter.foundation.service.server.connections.connection import Connection
from adapter.foundation.service.server.connections.limited_work import OTHERS_SHARE, LimitedWork
from adapter.foundation.service.server.connections.stages import Stage
from adapter.foundation.service.server.connections.waiting_connections import WaitingConnections
from adapter.foundation.service.server.shutdown_phases import Phase

MOST_PER_TURN = {Stage.IDLE: 32, Stage.HEAD: 32, Stage.BODY: 8, Stage.SEND: 16, Stage.LINGER: 8}
"""The most connections of each stage to advance before other connections get a turn."""
LONGEST_WAIT = 1.0
"""Seconds between two reports to the arbiter that the worker is alive."""


class TidewatchWorker(AdvancingWorker):
    """Polls all waiting connections in the main thread; see the module."""

    poller: selectors.BaseSelector

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - handed through to gunicorn
        super().__init__(*args, **kwargs)
        self._show_life_at = 0.0
        self._others_share = LimitedWork(lambda: self._threads.is_limited, OTHERS_SHARE)
        self._others: selectors.EpollSelector
        """Polls all connections except those that come first; created after the fork."""
        self._others_are_watched = False
        self._others_are_ready = False
        self._is_others_turn = False
        """Whether connections that do not come first may be advanced now."""

    def init_process(self) -> None:
        """Set up the process after the fork."""
        self.app.before_worker()
        super().init_process()

    def init_signals(self) -> None:
        """Handle gunicorn's signals except SIGINT and SIGHUP, which a terminal also sends to the arbiter."""
        super().init_signals()
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    # In the poller thread

    def run(self) -> None:
        """Serve until the shutdown, and then through its phases."""
        self._others = selectors.EpollSelector()
        self._waiting_connections = WaitingConnections(self.poller, self._deadlines, self._others)
        self.poller.register(self.method_queue.fileno(), selectors.EVENT_READ, self.method_queue.run_callbacks)
        self.app.context.mark_ready(self)
        while self._phase is not Phase.OVER and not self._is_drained():
            self._show_life()
            self._dispatch(self._waiting_connections.next_expiry(self._longest_wait()))
            self._threads.start_waiting()
            for conn in self._waiting_connections.expired_connections():
                self._expire(conn)
            if not self.is_parent_alive():
                self._ending.hurry(time.monotonic())
            self._enter(self._ending.phase(time.monotonic()))
        self._finish()

    def _longest_wait(self) -> float:
        """Choose what the poller waits for, and return the seconds after which this choice may change."""
        held = self._threads.seconds_to_others()
        self._is_others_turn = not held
        accepting = max(held, self._accept_share.pause_seconds())
        self.set_accept_enabled(self._may_accept() and not accepting)
        others = max(held, self._others_share.pause_seconds())
        self._watch_others(enabled=not others)
        newcomers = (
            max(held, self._handshake_share.pause_seconds()) if self._waiting_connections.newcomers else LONGEST_WAIT
        )
        return min(
            accepting or LONGEST_WAIT,
            others or LONGEST_WAIT,
            newcomers,
            self._threads.seconds_to_next_start(),
            self._ending.next_phase(time.monotonic()),
        )

    def _watch_others(self, *, enabled: bool) -> None:
        if enabled is self._others_are_watched:
            return
        self._others_are_watched = enabled
        if enabled:
            self.poller.register(self._others.fileno(), selectors.EVENT_READ, self._note_others)
        else:
            self.poller.unregister(self._others.fileno())

    def _note_others(self, _: object) -> None:
        self._others_are_ready = True

    def _enter(self, phase: Phase) -> None:
        if phase is self._phase:
            return
        if self._phase is Phase.SERVING:
            self.app.context.mark_stopping()
        self._phase = phase
        if phase >= Phase.DRAINING:
            self.alive = False
            self.set_accept_enabled(enabled=False)
            for listener in self.sockets:
                listener.close()
            self._dispatch(0)
            for conn in self._waiting_connections.all(Stage.HANDSHAKE, Stage.IDLE):
                self._drop(conn)
            for stage in (Stage.HEAD, Stage.BODY):
                self._waiting_connections.shorten(stage, LONGEST_WAIT)

    def open_connections(self) -> dict[str, int]:
        """Return the number of connections by stage."""
        waiting = {stage.name.lower(): count for stage, count in self._waiting_connections.counts().items()}
        return waiting | {"request": self._in_request}

    def _show_life(self) -> None:
        """Report to the arbiter that the poller is alive; rarely, because each report costs a system call."""
        now = time.monotonic()
        if now >= self._show_life_at:
            self.notify()
            self._show_life_at = now + LONGEST_WAIT

    def _dispatch(self, timeout: float) -> None:
        """Advance the connections that come first, then the others if it is their turn, then accept new ones."""
        listeners: list[Any] = []
        for key, _ in self.poller.select(timeout):
            if key.data == self.accept:
                listeners.append(key.fileobj)
            elif isinstance(key.data, Connection):
                self._advance(key.data)
            else:
                key.data(key.fileobj)
        if not self._is_others_turn or self._threads.seconds_to_others():
            return
        end = time.monotonic() + TURN_SECONDS
        with self._others_share.count_time():
            ready = self._ready_others()
        self._advance_newcomers(end)
        with self._others_share.count_time():
            self._advance_some(ready, end)
        with self._accept_share.count_time():
            for listener in listeners:
                self.accept(listener)
        self._threads.others_had_turn()

    def _ready_others(self) -> dict[Stage, list[Connection]]:
        """Return the connections that are ready, by stage; those in a handshake take turns of their own."""
        ready: dict[Stage, list[Connection]] = {stage: [] for stage in MOST_PER_TURN}
        if not self._others_are_ready:
            return ready
        self._others_are_ready = False
        for key, _ in self._others.select(0):
            if key.data.stage is Stage.HANDSHAKE:
                self._waiting_connections.park(key.data)
            else:
                ready[key.data.stage].append(key.data)
        return ready

    def _advance_some(self, ready: dict[Stage, list[Connection]], end: float) -> None:
        """Advance some connections of each stage, and at least one of each however long that takes."""
        for stage, waiting in ready.items():
            waiting.sort(key=attrgetter("steps"))
            for place, conn in enumerate(waiting[: MOST_PER_TURN[stage]]):
                if place and time.monotonic() >= end:
                    break
                conn.steps += 1
                # An earlier connection of this turn may have caused it to be closed.
                if conn.stage is stage:
                    self._advance(conn)
