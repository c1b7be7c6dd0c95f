"""Settings of the garbage collector for a server.

A full collection walks all objects of the process: with the metadata of tens of thousands of pods, that takes some
hundred milliseconds, in which no request is answered. Objects from the start live as long as the process, so they are
exempted from collection. Later objects are mostly freed by reference counts, so the collector runs rarely and in small
steps.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 10_000
"""Number of new container objects that triggers a young collection, which takes about a third of a millisecond."""
MIDDLE = 20
OLD = 1_000


def settle_collector() -> None:
    """Exempt all existing objects from collection. Call this once, when all long-lived objects have been created."""
    gc.collect()
    gc.freeze()
    collect_rarely()


def collect_rarely() -> None:
    """Make collections rare. Call this when a program starts, since the objects that imports create live to its end."""
    gc.set_threshold(YOUNG, MIDDLE, OLD)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect rarely, and skip all existing objects, while a command reads a lot of data and decides once.

    Reading a cluster of 150,000 pods creates millions of objects that live until the end; collections that walk them
    again and again would take a quarter of the time.
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
    """Pause the collector while a command makes its one decision, and exempt the objects that this creates afterwards.

    The objects that it creates for each node and pod are in use until the end. They are exempted before collections
    resume: otherwise the first one would walk all of them at once, which takes longer than all that were avoided.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
