"""Why a query gave no reading, as a value that can be kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.readings.errors import ReadingError


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a query gave no reading.

    Not the exception itself: that would hold the whole answer by its traceback, and gather the tracebacks of all who
    are told.
    """

    error: type[ReadingError]
    message: str
    """The whole, for the log."""
    narrows: bool = False
    """A narrower query may succeed where this one did not."""
    of_source: bool = False
    """Prometheus itself cannot be asked, so that it is no fault of this query."""
    told: str | None = None
    """What any asker may read, where that is less than the message."""
    lasting: bool = False
    """It does not pass by itself: the text cannot be read, or the answer is too large."""

    def raised(self) -> ReadingError:
        """Return an error to raise."""
        return self.error(self.message, told=self.told)
