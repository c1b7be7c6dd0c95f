"""Calls what must be done at the end of a process, whether or not a thread can be started for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

_log = logging.getLogger(__name__)


def call_all(callbacks: Sequence[Callable[[], None]]) -> None:
    """Call all, the last one first; one that fails is logged, and does not keep the others from being called."""
    for callback in reversed(callbacks):
        try:
            callback()
        except Exception:  # noqa: BLE001 - one that fails must not keep the others from releasing what they hold
            _log.exception("a callback failed during the shutdown")


def begin_calling(callbacks: Sequence[Callable[[], None]]) -> threading.Thread | None:
    """Call all in a thread, and return it; if the system can start none, call them here, and return None."""
    thread = threading.Thread(target=call_all, args=(callbacks,), name="stopping", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        call_all(callbacks)
        return None
    return thread
