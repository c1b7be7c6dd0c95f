"""The size of a CapacityBuffer, which Cluster Autoscaler and Karpenter obey.

The buffer was created by somebody else, and defines a chunk. Its `spec.replicas` is written, and the value from
before the first write is kept in an annotation, so that it can be put back.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.objects.resources import ResolveResource, UnknownResourceError
from adapter.foundation.sources.kubernetes.errors import KubernetesError, NotFoundError
from recommender.kinds.cluster_size.node_groups.fields import section, texts, whole
from recommender.outputs.late_effects import LateEffects
from recommender.outputs.scale_documents import target_path, uid_of
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import (
    READ_SECONDS,
    ScaleOutcome,
    SendingTerms,
    failed_outcome,
    send_write,
    stored_first,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.kubernetes.writing import Fence, GetsAndReplaces
    from recommender.outputs.pending_writes import PendingWrite

FORMER_REPLICAS: Final = "tidewatch.io/replicas-before"
"""The annotation with `spec.replicas` from before the first write; empty if there was none."""


SIZED_BY: Final = "tidewatch.io/sized-by"
"""The annotation with the owner of the written size, which is the recommender's Lease, and its recommendation."""


def owner_of(namespace: str, lease: str) -> str:
    """Return the owner of the sizes that the holders of a Lease write."""
    return f"{namespace}/{lease}"


def recommendation_of(sized_by: str, owner: str) -> str:
    """Return the recommendation in the value of an annotation; empty if it has another owner."""
    return sized_by.removeprefix(f"{owner}/") if sized_by.startswith(f"{owner}/") else ""


class CapacityBufferAttempt:
    """Writes `spec.replicas` of a CapacityBuffer, or puts the former value back."""

    def __init__(
        self,
        objects: GetsAndReplaces,
        resolve: ResolveResource,
        owner: str,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`owner` distinguishes this recommender from others of the cluster (`owner_of`)."""
        self._owner = owner
        self._objects = objects
        self._resolve = resolve
        self._late = LateEffects(monotonic)

    def __call__(self, write: PendingWrite, terms: SendingTerms) -> ScaleOutcome:
        """Read the buffer, and replace the version that was read unless it is already as it should be."""
        if write.withdraws and self._late.may_come(write.target):
            message = f"{write.target}: a size may still be written, so the former one is put back a little later"
            return ScaleOutcome(write, ScaleResult.FENCED, message=message)
        missing = ScaleOutcome(write, ScaleResult.ERROR)
        try:
            path = target_path(write.target, self._resolve)
            buffer = self._objects.get(path, seconds=READ_SECONDS).document
        except NotFoundError as error:
            if write.withdraws:
                return replace(missing, result=ScaleResult.UNCHANGED)
            return replace(missing, message=f"{error}: create {write.target}, which defines a chunk")
        except (UnknownResourceError, KubernetesError) as error:
            return _with_remedy(failed_outcome(missing, error))
        found = ScaleOutcome(write, ScaleResult.UNCHANGED, whole(buffer, "spec", "replicas"), uid_of(buffer))
        if write.withdraws:
            document = _buffer_before_writes(buffer, self._owner)
        else:
            document = _with_replicas(buffer, write.replicas, f"{self._owner}/{write.recommendation}")
        return found if document == buffer else self._write(found, path, document, terms)

    def _write(self, found: ScaleOutcome, path: str, document: dict[str, Any], terms: SendingTerms) -> ScaleOutcome:
        stored = stored_first(found, terms)
        if stored.result is not ScaleResult.OK:
            return stored

        def write(fence: Fence) -> None:
            with self._late.note(found.write.target, fence):
                self._objects.replace(path, document, fence)

        return _with_remedy(send_write(found, terms, write))


def _with_remedy(outcome: ScaleOutcome) -> ScaleOutcome:
    """Return the outcome; if the right to put a former size back is missing, its message says what a user can do."""
    if not (outcome.write.withdraws and outcome.is_forbidden):
        return outcome
    message = (
        f"{outcome.message}; {outcome.write.target} is no longer sized and keeps the written size: grant get and "
        f"update on it, or give spec.replicas the value of the annotation {FORMER_REPLICAS} and remove this "
        f"and {SIZED_BY}"
    )
    return replace(outcome, message=message)


def _with_replicas(buffer: dict[str, Any], replicas: int, sized_by: str) -> dict[str, Any]:
    annotations = texts(buffer, "metadata", "annotations")
    if FORMER_REPLICAS not in annotations:
        before = whole(buffer, "spec", "replicas")
        annotations = {**annotations, FORMER_REPLICAS: "" if before is None else str(before)}
    annotations = {**annotations, SIZED_BY: sized_by}
    return _with_spec(buffer, annotations, {**section(buffer, "spec"), "replicas": replicas})


def _buffer_before_writes(buffer: dict[str, Any], owner: str) -> dict[str, Any]:
    """Return the buffer as it was before the first write.

    A buffer that was never written, or that another recommender sizes by now, stays as it is.
    A buffer that had neither replicas nor a percentage or limits gets 0 replicas, as a size is required.
    """
    annotations = texts(buffer, "metadata", "annotations")
    before = annotations.pop(FORMER_REPLICAS, None)
    sized_by = annotations.pop(SIZED_BY, "")
    if before is None or (sized_by and not recommendation_of(sized_by, owner)):
        return buffer
    spec = {key: value for key, value in section(buffer, "spec").items() if key != "replicas"}
    if before.isascii() and before.isdecimal():
        spec["replicas"] = int(before)
    elif spec.get("percentage") is None and not spec.get("limits"):
        spec["replicas"] = 0
    return _with_spec(buffer, annotations, spec)


def _with_spec(buffer: dict[str, Any], annotations: dict[str, str], spec: dict[str, Any]) -> dict[str, Any]:
    return {**buffer, "metadata": {**section(buffer, "metadata"), "annotations": annotations}, "spec": spec}
