"""Determines whether this process may act: it holds the Lease, or it runs without a Lease."""

from __future__ import annotations

from typing import Protocol


class Leadership(Protocol):
    """Decides whether this process acts on its decisions (`recommender.leader_election.elector.LeaseElector`)."""

    def is_leader(self) -> bool:
        """Return whether this process leads now."""

    def may_write(self, seconds: float) -> bool:
        """Return whether this process may write for the next `seconds`."""

    def holder(self) -> str:
        """Return the identity of the leader; empty if it is not known."""


class WithoutLease:
    """The leadership of a process that runs alone."""

    def is_leader(self) -> bool:
        """Return True."""
        return True

    def may_write(self, seconds: float) -> bool:  # noqa: ARG002 - as the protocol has it
        """Return True."""
        return True

    def holder(self) -> str:
        """Return an empty string: there is no Lease that names a holder."""
        return ""
