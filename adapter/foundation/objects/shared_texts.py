"""One string for equal texts of many objects, such as the values of labels.

`sys.intern` would keep texts of objects that come and go: some versions of Python (3.12) never free its strings.
"""

from __future__ import annotations

from typing import Final

from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache

_SHARED_BYTES: Final = 8 * MEBIBYTE


@bounded_cache(_SHARED_BYTES)
def shared_text(text: str) -> str:
    """Return the string that was first seen for a text, as long as it is remembered."""
    return text
