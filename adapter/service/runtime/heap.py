"""The C library's heap beside serving.

glibc gives threads heaps of their own, up to eight for each core, so that they need not wait for each other. Threads
that hold Python's lock do not wait for each other there anyway, but the large answers that some thirty of them decode
now and then leave a heap of holes behind in each: with 50,000 pods and five metrics 80 of 290 MiB. So there are two
heaps, and what is large comes from the system and goes back to it.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

# Parameters of mallopt(3), from glibc's malloc.h.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_ARENA_MAX = -8

_HEAPS = 2
_FREE_BYTES_KEPT = 1024 * 1024
_LARGE_BYTES = 256 * 1024


def settle_heap() -> None:
    """Call once, before there are threads. Where the C library is not glibc, and has no such thing, nothing happens."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_ARENA_MAX, _HEAPS)
        mallopt(_TRIM_THRESHOLD, _FREE_BYTES_KEPT)
        mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
