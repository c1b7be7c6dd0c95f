"""One attempt at a scale call, which replaces the Scale that it has read unless that has the wanted size already."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.objects.resources import ResolveResource, UnknownResourceError
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from recommender.outputs.scale_documents import ScaleDocumentError, replicas_of, target_path, uid_of, with_replicas
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import (
    READ_SECONDS,
    ScaleOutcome,
    SendingTerms,
    failed_outcome,
    send_size,
    stored_first,
)

if TYPE_CHECKING:
    from adapter.foundation.sources.kubernetes.writing import GetsAndReplaces
    from recommender.outputs.pending_writes import PendingWrite


class ScaleAttempt:
    """Writes the size of a target to its scale subresource."""

    def __init__(self, objects: GetsAndReplaces, resolve: ResolveResource) -> None:
        self._objects = objects
        self._resolve = resolve

    def __call__(self, write: PendingWrite, terms: SendingTerms) -> ScaleOutcome:
        """Read the Scale, and replace exactly that version unless it has the wanted size already.

        The result is CONFLICT if the write would exceed the decision because the size has changed since then.
        """
        try:
            path = f"{target_path(write.target, self._resolve)}/scale"
            scale = self._objects.get(path, seconds=READ_SECONDS).document
            before = replicas_of(scale)
        except (UnknownResourceError, ScaleDocumentError, KubernetesError) as error:
            return failed_outcome(ScaleOutcome(write, ScaleResult.ERROR), error)
        found = ScaleOutcome(write, ScaleResult.UNCHANGED, before, uid_of(scale))
        if before == write.replicas:
            return found
        if _exceeds_decision(write, before):
            # Brakes and pauses were applied to another size: the next decision is about the current one.
            message = f"its size is now {before}, but {write.replicas} was decided at {write.known_size}"
            return replace(found, result=ScaleResult.CONFLICT, message=message, is_outdated=True)
        stored = stored_first(found, terms)
        if stored.result is not ScaleResult.OK:
            return stored
        document = with_replicas(scale, write.replicas)
        return send_size(found, terms, lambda fence: self._objects.replace(path, document, fence))


def _exceeds_decision(write: PendingWrite, current: int) -> bool:
    """Return whether a write would change the current size by more than was decided, or in the opposite direction."""
    if write.known_size is None:
        return False
    decided, change = write.replicas - write.known_size, write.replicas - current
    return not (0 < change <= decided or decided <= change < 0)
