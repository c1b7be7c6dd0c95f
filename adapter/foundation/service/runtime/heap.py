"""Settings of the C library's heap for a server.

glibc gives threads separate heaps, up to eight for each core, so that they need not wait for each other. Python's lock
makes that unnecessary, but the large answers that some thirty threads decode now and then leave a fragmented heap
behind in each: with 50,000 pods and five metrics, that was 80 of 290 MiB. Therefore the process uses two heaps, and
large blocks come from the system and are returned to it.
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
    """Limit the heaps. Call this once, before threads exist; it does nothing if the C library is not glibc."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_ARENA_MAX, _HEAPS)
        mallopt(_TRIM_THRESHOLD, _FREE_BYTES_KEPT)
        mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)


def return_free_memory() -> None:
    """Return unused pages of the heaps to the system, which takes milliseconds; call it after a large piece of work.

    Other threads go on meanwhile. It does nothing if the C library is not glibc.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
