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
from recommender.outputs.scale_documents import uid_of
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.target_paths import target_path
from recommender.outputs.write_attempt import READ_SECONDS, ScaleOutcome, SendingTerms, failed, sent, stored_first

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.kubernetes.writing import Fence, GetsAndReplaces
    from recommender.outputs.wishes import Wish

FORMER_REPLICAS: Final = "tidewatch.io/replicas-before"
"""The annotation with `spec.replicas` from before the first write; empty if there was none."""


class CapacityBufferAttempt:
    """Writes `spec.replicas` of a CapacityBuffer, or puts the former value back."""

    def __init__(
        self, objects: GetsAndReplaces, resolve: ResolveResource, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._objects = objects
        self._resolve = resolve
        self._late = LateEffects(monotonic)

    def __call__(self, wish: Wish, terms: SendingTerms) -> ScaleOutcome:
        """Read the buffer, and replace the version that was read unless it is already as it should be."""
        if wish.withdraws and self._late.may_come(wish.target):
            message = f"{wish.target}: a size may still be written, so the former one is put back a little later"
            return ScaleOutcome(wish, ScaleResult.FENCED, message=message)
        missing = ScaleOutcome(wish, ScaleResult.ERROR)
        try:
            path = target_path(wish.target, self._resolve)
            buffer = self._objects.get(path, seconds=READ_SECONDS).document
        except NotFoundError as error:
            if wish.withdraws:
                return replace(missing, result=ScaleResult.UNCHANGED)
            return replace(missing, message=f"{error}: create {wish.target}, which defines a chunk")
        except (UnknownResourceError, KubernetesError) as error:
            return failed(missing, error)
        found = ScaleOutcome(wish, ScaleResult.UNCHANGED, whole(buffer, "spec", "replicas"), uid_of(buffer))
        document = _buffer_before_writes(buffer) if wish.withdraws else _with_replicas(buffer, wish.replicas)
        return found if document == buffer else self._write(found, path, document, terms)

    def _write(self, found: ScaleOutcome, path: str, document: dict[str, Any], terms: SendingTerms) -> ScaleOutcome:
        stored = stored_first(found, terms)
        if stored.result is not ScaleResult.OK:
            return stored

        def write(fence: Fence) -> None:
            with self._late.noted(found.wish.target, fence):
                self._objects.replace(path, document, fence)

        return sent(found, terms, write)


def _with_replicas(buffer: dict[str, Any], replicas: int) -> dict[str, Any]:
    annotations = texts(buffer, "metadata", "annotations")
    if FORMER_REPLICAS not in annotations:
        before = whole(buffer, "spec", "replicas")
        annotations = {**annotations, FORMER_REPLICAS: "" if before is None else str(before)}
    return _with_spec(buffer, annotations, {**section(buffer, "spec"), "replicas": replicas})


def _buffer_before_writes(buffer: dict[str, Any]) -> dict[str, Any]:
    """Return the buffer as it was before the first write; one that was never written stays as it is.

    A buffer that had neither replicas nor a percentage or limits gets 0 replicas, since one without a size is invalid.
    """
    annotations = texts(buffer, "metadata", "annotations")
    before = annotations.pop(FORMER_REPLICAS, None)
    if before is None:
        return buffer
    spec = {key: value for key, value in section(buffer, "spec").items() if key != "replicas"}
    if before.isascii() and before.isdecimal():
        spec["replicas"] = int(before)
    elif spec.get("percentage") is None and not spec.get("limits"):
        spec["replicas"] = 0
    return _with_spec(buffer, annotations, spec)


def _with_spec(buffer: dict[str, Any], annotations: dict[str, str], spec: dict[str, Any]) -> dict[str, Any]:
    return {**buffer, "metadata": {**section(buffer, "metadata"), "annotations": annotations}, "spec": spec}
