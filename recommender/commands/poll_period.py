"""The flag that says how often a replacement of another program polls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.tree import shorten
from adapter.foundation.service.flags.parsing import UsageError

if TYPE_CHECKING:
    from adapter.foundation.service.flags.table import FlagValues

_LONGEST_SECONDS: Final = 365 * 86_400
"""One year: threads cannot wait for much longer than 292 years, and nobody means to wait for more than one."""
MILLI: Final = 1000


def poll_seconds(values: FlagValues, flag: str, units_in_a_second: int = 1) -> float:
    """Return the seconds between two polls that a flag states in whole units. Raises UsageError."""
    period, most = values.integer(flag), _LONGEST_SECONDS * units_in_a_second
    if not 1 <= period <= most:
        unit = "milliseconds" if units_in_a_second == MILLI else "seconds"
        raise UsageError(f"--{flag} is {shorten(str(period))}: write 1 to {most} {unit}")
    return period / units_in_a_second
