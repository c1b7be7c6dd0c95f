"""Settings of the garbage collector for a server.

A full collection walks all objects of the process: with the metadata of tens of thousands of pods, that takes some
hundred milliseconds, in which no request is answered. Objects from the start live as long as the process, so they are
exempted from collection. Later objects are mostly freed by reference counts, so the collector runs rarely and in small
steps.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

YOUNG = 10_000
"""Number of new containers that starts a collection of the young generation: about a third of a millisecond of work."""
MIDDLE = 20
OLD = 1_000


def settle_collector() -> None:
    """Exempt everything that exists from collection; call it once, when all long-lived objects have been made."""
    gc.collect()
    gc.freeze()
    collect_rarely()


def collect_rarely() -> None:
    """Make collections rare. Called at the start of a program: objects that imports create stay for its whole life."""
    gc.set_threshold(YOUNG, MIDDLE, OLD)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect rarely, and nothing that exists already, while a command reads a lot and decides once.

    Reading a cluster of 150,000 pods makes millions of objects that live until the end, and walking them repeatedly
    takes a quarter of the time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def no_collections() -> Iterator[None]:
    """Collect nothing while a command makes its one decision, and nothing of what that has made.

    What it makes for each node and pod is in use until the end. It is exempted before collections begin again: the
    first one would walk all of it at once, which takes longer than all that were saved.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
