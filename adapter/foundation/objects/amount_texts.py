"""Amounts of resources as people read them."""

from __future__ import annotations

from typing import Final

from adapter.foundation.objects.pod_requests import CPU, MEMORY
from adapter.foundation.objects.quantities import milli_quantity

_IN_BYTES: Final = frozenset({MEMORY, "ephemeral-storage", "storage"})
_HUGE_PAGES: Final = "hugepages-"
_SUFFIXES: Final = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))


def amount_text(resource: str, amount: int, *, rounds_up: bool) -> str:
    """Return an amount in the unit that people use: `1500m` of `cpu`, `15.8Gi` of `memory`, other resources as counts.

    `amount` is in millicores for `cpu`, otherwise in bytes or a count. Bytes are shown with at most two decimals.
    Callers round requests up and free amounts down, so that a request that does not fit never looks as if it did.
    """
    if resource == CPU:
        return milli_quantity(amount)
    if resource in _IN_BYTES or resource.startswith(_HUGE_PAGES):
        for size, suffix in _SUFFIXES:
            if abs(amount) >= size:
                hundredths = -(-amount * 100 // size) if rounds_up else amount * 100 // size
                whole, rest = divmod(hundredths, 100)
                return f"{whole}.{rest:02}".rstrip("0").rstrip(".") + suffix
    return str(amount)
