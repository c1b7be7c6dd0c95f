"""The reason why a query has no reading, as a value that can be stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.metrics.readings.errors import ReadingError


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a query has no reading.

    It is a value and not the exception, whose traceback would keep the whole answer alive, and would grow each time the
    exception is raised for another request.
    """

    error: type[ReadingError]
    message: str
    """The full message, for the log."""
    narrows: bool = False
    """Whether a narrower query may succeed."""
    of_source: bool = False
    """Whether Prometheus itself cannot be asked, so that the query is not at fault."""
    public_message: str | None = None
    """The part of the message that any client may read; None if that is the whole message."""
    lasting: bool = False
    """Whether retrying alone does not help: the query cannot be parsed, or its answer is too large."""

    @classmethod
    def of(cls, error: ReadingError) -> Failure:
        """Return an error as a value."""
        return cls(type(error), error.message, public_message=error.public_message)

    def to_error(self) -> ReadingError:
        """Return an error to raise."""
        return self.error(self.message, public_message=self.public_message)
