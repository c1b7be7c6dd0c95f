"""Who may act: the holder of the Lease, or a process that runs without a Lease."""

from __future__ import annotations

from typing import Protocol


class Leadership(Protocol):
    """Whether this process acts on its decisions (`adapter.sources.kubernetes.lease.LeaseElector`)."""

    def is_leader(self) -> bool:
        """Whether this process leads now."""
        ...

    def may_write(self, seconds: float) -> bool:
        """Whether this process may write for so many more seconds."""
        ...

    def holder(self) -> str:
        """Return the identity of the leader; empty if it is not known."""
        ...


class WithoutLease:
    """The leadership of a process that runs alone."""

    def is_leader(self) -> bool:
        """Return True."""
        return True

    def may_write(self, seconds: float) -> bool:  # noqa: ARG002 - as the protocol has it
        """Return True."""
        return True

    def holder(self) -> str:
        """Return the empty text: there is no Lease to name a holder."""
        return ""
