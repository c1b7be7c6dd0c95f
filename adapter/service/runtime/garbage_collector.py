"""Settings of the garbage collector for a server.

A full collection walks all objects of the process: with the metadata of tens of thousands of pods, that takes some
hundred milliseconds, in which no request is answered. Objects from the start live as long as the process, so they are
exempted from collection. Later objects are mostly freed by reference counts, so the collector runs rarely and in small
steps.
"""

from __future__ import annotations

import gc

YOUNG = 10_000
"""Number of new containers that starts a collection of the young generation: about a third of a millisecond of work."""
MIDDLE = 20
OLD = 1_000


def settle_collector() -> None:
    """Exempt everything that exists from collection; call it once, when all long-lived objects have been made."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
