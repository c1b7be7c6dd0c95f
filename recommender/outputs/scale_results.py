"""The possible results of a scale call."""

from __future__ import annotations

from enum import StrEnum


class ScaleResult(StrEnum):
    """The label `result` of `tidewatch_scale_calls_total`."""

    OK = "ok"
    """The size was written."""
    UNCHANGED = "unchanged"
    """The target already has the size, so nothing was written."""
    CONFLICT = "conflict"
    """Another client changed the target since it was read, or its size since the decision. The write is sent again, or
    the decision is made again."""
    ERROR = "error"
    """The attempt failed; it is repeated after a back-off."""
    REFUSED = "refused"
    """Something else owns what would be written, or current limits or pauses forbid the write."""
    SUPERSEDED = "superseded"
    """A newer decision exists, so this one is not carried out."""
    FENCED = "fenced"
    """This process may not write at present; the call is tried again."""
    EXPIRED = "expired"
    """The decision became too old before it could be carried out."""
