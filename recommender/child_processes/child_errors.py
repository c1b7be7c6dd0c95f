"""Errors for child processes that returned no result."""

from __future__ import annotations

from typing import ClassVar, Final

from recommender.child_processes import child as child_process


class ChildError(Exception):
    """A child returned no result."""

    outcome: ClassVar[str] = "error"
    """The value of the label `outcome` in the counters of `Children`."""


class ChildDeadlineError(ChildError):
    """The child exceeded its deadline, either while it was at work or while it waited in the queue."""

    outcome = "deadline"


class ChildMemoryError(ChildError):
    """The child needed more memory than its limit."""

    outcome = "memory"


class ChildCrashError(ChildError):
    """The child exited by itself without an outcome.

    Attributes:
        status: the exit status, or the negative number of a signal.
    """

    outcome = "crash"

    def __init__(self, message: str, status: int) -> None:
        """Store the exit status; `message` is the text of the error."""
        super().__init__(message)
        self.status = status


class ChildRaisedError(ChildError):
    """The function raised; the message is the exception's class and text."""

    outcome = "raised"


class ChildResultError(ChildError):
    """The function returned a value that cannot be pickled or is too large."""

    outcome = "result"


class ChildClosedError(Exception):
    """The child was killed or not started, because this process is shutting down.

    It is no ChildError: whoever goes on without a child's result must not go on now.
    """

    outcome: Final = "closed"


CHILD_ERRORS: dict[str, type[ChildError]] = {
    child_process.RAISED: ChildRaisedError,
    child_process.OUT_OF_MEMORY: ChildMemoryError,
    child_process.NO_RESULT: ChildResultError,
}
