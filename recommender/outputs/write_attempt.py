"""One attempt at a write of any kind: its terms, its outcome, and how it is sent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from adapter.foundation.sources.kubernetes.errors import (
    ConflictError,
    FencedError,
    ForbiddenError,
    KubernetesError,
    StatusError,
    is_of_the_server,
)
from adapter.foundation.sources.kubernetes.writing import Fence
from recommender.outputs.scale_documents import ScaleDocumentError, replicas_of
from recommender.outputs.scale_results import ScaleResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.leader_election.lease_rules import LeaseTiming
    from recommender.outputs.pending_writes import PendingWrite


READ_SECONDS = 5.0
"""How long a read before a write may take."""
NOT_STORED = (
    "the cool-down that the call starts could not be stored, so the call was not sent: see the log about the memory"
)
"""The message of an attempt that failed because of the memory, not because of its target."""
LONGEST_EFFECT_RATIO = 1.5
"""A write can have an effect for this many times the seconds of its fence (`writing.Fence`)."""


@dataclass(frozen=True, slots=True)
class ScaleOutcome:
    """The outcome of one attempt."""

    write: PendingWrite
    result: ScaleResult
    before: int | None = None
    """The size that was found; None if it could not be read."""
    uid: str = ""
    """UID of the target; empty if it is not known."""
    message: str = ""
    """The error, and what to do; empty if there is none."""
    retry_after_seconds: float = 0.0
    """How long the server asks to wait."""
    is_of_the_server: bool = False
    """Whether the API server failed or was not reached; such an error says nothing about the target."""
    is_forbidden: bool = False
    """Whether the API server refused the call because a right is missing."""
    owner: str | None = None
    """The owner of the field, if the write was refused because of it."""
    is_outdated: bool = False
    """Whether the decision can no longer be carried out, so that a repetition is useless and a new one is needed."""
    stored: int | None = None
    """The size in the answer to the write, which an admission webhook may have changed; None if there is none."""
    is_undone: bool = False
    """Whether that answer still has the former size, so that the same write would change nothing again."""

    @property
    def stored_instead(self) -> int | None:
        """The size that was stored instead of the written one; None if it was not changed, or is not known."""
        return None if self.stored == self.write.replicas else self.stored


@dataclass(frozen=True, slots=True)
class SendingTerms:
    """The conditions under which an attempt may write."""

    refusal: Callable[[], ScaleResult | None]
    """Returns why the write may no longer be sent; None if it may be sent."""
    store: Callable[[], bool]
    """Stores the effects of a write on the memory; nothing is sent unless it returns True."""
    fence: Fence
    """The fence of each write."""


class Attempt(Protocol):
    """One attempt to carry out a write. Each write of the attempt is sent at most once."""

    def __call__(self, write: PendingWrite, terms: SendingTerms) -> ScaleOutcome:
        """Return the outcome."""


def longest_fenced_write_seconds(timing: LeaseTiming) -> float:
    """Return the longest fence, in seconds, with which a leader may always write.

    A leader may be at the end of its renew deadline; the rest of the Lease must then suffice for the longest
    write and for the slack between two clocks.
    """
    left = timing.lease_seconds - timing.renew_deadline_seconds - timing.slack_seconds
    return left / LONGEST_EFFECT_RATIO


def stored_first(found: ScaleOutcome, terms: SendingTerms) -> ScaleOutcome:
    """Store the effects of a write on the memory, and return the outcome: OK means that the write may follow."""
    refusal = terms.refusal()
    if refusal is not None:
        return replace(found, result=refusal)
    if not terms.store():
        return replace(found, result=ScaleResult.ERROR, message=NOT_STORED)
    return replace(found, result=ScaleResult.OK)


def send_write(found: ScaleOutcome, terms: SendingTerms, write: Callable[[Fence], object]) -> ScaleOutcome:
    """Send a write within the terms, and return the outcome."""
    refusals: list[ScaleResult] = []

    def permit(seconds: float) -> bool:
        # The decision may have expired while the target was read and the memory was stored.
        refusal = terms.refusal()
        if refusal is not None:
            refusals.append(refusal)
        return refusal is None and terms.fence.permit(seconds)

    try:
        write(Fence(terms.fence.seconds, permit))
    except FencedError as error:
        return replace(found, result=(*refusals, ScaleResult.FENCED)[0], message=str(error))
    except ConflictError as error:
        return failed_outcome(replace(found, result=ScaleResult.CONFLICT), error)
    except KubernetesError as error:
        return failed_outcome(replace(found, result=ScaleResult.ERROR), error)
    return replace(found, result=ScaleResult.OK)


def send_size(found: ScaleOutcome, terms: SendingTerms, write: Callable[[Fence], dict[str, Any]]) -> ScaleOutcome:
    """Send a size within the terms, and return the outcome with the size that the answer says was stored.

    The result is ERROR if that is still the former size: as a success, the same write would be repeated for ever.
    """
    answers: list[dict[str, Any]] = []
    outcome = send_write(found, terms, lambda fence: answers.append(write(fence)))
    try:
        stored = replicas_of(answers[0]) if answers else None
    except ScaleDocumentError:
        return outcome
    if stored is None or stored != found.before:
        return replace(outcome, stored=stored)
    message = (
        f"its size is still {stored} after {found.write.replicas} was written: "
        "look for an admission webhook, or a controller of this kind, that changes it"
    )
    return replace(outcome, result=ScaleResult.ERROR, stored=stored, message=message, is_undone=True)


def failed_outcome(outcome: ScaleOutcome, error: Exception) -> ScaleOutcome:
    """Return the outcome with the error's message, and the wait that the server asks for."""
    retry_after = error.retry_after_seconds if isinstance(error, StatusError) else 0.0
    return replace(
        outcome,
        message=str(error),
        retry_after_seconds=retry_after,
        is_of_the_server=is_of_the_server(error),
        is_forbidden=isinstance(error, ForbiddenError),
    )
