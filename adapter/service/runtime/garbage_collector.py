"""The garbage collector beside serving.

A full collection walks everything that the process holds: with the metadata of tens of thousands of pods that is some
hundred milliseconds in which nobody is answered. What was made at the start lives as long as the process, so it is
moved out of the collector's sight; what comes later is mostly freed by reference counts, so it looks seldom, and at
little at a time.
"""

from __future__ import annotations

import gc

YOUNG = 10_000
"""Surplus of new containers at which the young are looked at: about a third of a millisecond of work."""
MIDDLE = 20
OLD = 1_000


def settle_collector() -> None:
    """Call once, when all that stays has been made."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
