"""Sizes of Cluster API's node groups, through their scale subresource, within the limits at the time of the write.

The scale is read first, then the object with its annotations. Both have one resourceVersion, so a limit or a pause that
is set between the read and the write makes the write a conflict.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from adapter.foundation.objects.resources import ResolveResource, UnknownResourceError
from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.sources.kubernetes.errors import KubernetesError, NotFoundError
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.model.groups import limits_problem
from recommender.kinds.cluster_size.node_groups.cluster_api.removals import (
    DELETE_MARK,
    OWN_MARK,
    has_own_mark,
    node_of,
    unmarking_command,
)
from recommender.kinds.cluster_size.node_groups.cluster_api.scalables import (
    ScalableError,
    bounds_of,
    cluster_of,
    write_problem,
)
from recommender.kinds.cluster_size.node_groups.fields import section, text, whole
from recommender.outputs.late_effects import LateEffects
from recommender.outputs.scale_documents import ScaleDocumentError, replicas_of, target_path, uid_of, with_replicas
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import (
    READ_SECONDS,
    ScaleOutcome,
    SendingTerms,
    failed_outcome,
    send_size,
    send_write,
    stored_first,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.kubernetes.writing import Fence, GetsAndReplaces
    from recommender.outputs.pending_writes import MachineRemoval, PendingWrite

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Group:
    """A group as it was read for one attempt."""

    path: str
    scale: dict[str, Any]
    size: int
    document: dict[str, Any]
    cluster: dict[str, Any] | None


class ClusterApiAttempt:
    """Writes the size of a MachineDeployment, MachineSet or MachinePool, and marks the Machines to be removed."""

    def __init__(
        self, objects: GetsAndReplaces, resolve: ResolveResource, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._objects = objects
        self._resolve = resolve
        self._late = LateEffects(monotonic)
        """The writes of lower sizes that were not answered, and may still take effect."""

    def __call__(self, write: PendingWrite, terms: SendingTerms) -> ScaleOutcome:
        """Write the size if the current limits and pauses allow it."""
        try:
            group = self._read(write.target)
        except (UnknownResourceError, ScaleDocumentError, KubernetesError) as error:
            return failed_outcome(ScaleOutcome(write, ScaleResult.ERROR), error)
        found = self._outcome_before_change(write, group, terms)
        if found.result is not ScaleResult.OK:
            return found
        stored = stored_first(found, terms)
        if stored.result is not ScaleResult.OK:
            return stored
        if write.removals:
            return self._remove(found, group, terms)
        document = with_replicas(group.scale, write.replicas)
        return send_size(found, terms, lambda fence: self._objects.replace(f"{group.path}/scale", document, fence))

    def _outcome_before_change(self, write: PendingWrite, group: _Group, terms: SendingTerms) -> ScaleOutcome:
        """Remove the marks of earlier removals, and return the outcome at the current size: OK if it may change."""
        found = ScaleOutcome(write, ScaleResult.OK, group.size, uid_of(group.document))
        if write.unmarks and group.size == write.known_size:
            unmarked = self._take_marks_off(found, terms)
            # Only a smaller size would let Cluster API act on a mark that is left.
            if unmarked.result is not ScaleResult.OK and write.replicas <= group.size:
                return unmarked
        if group.size == write.replicas:
            return replace(found, result=ScaleResult.UNCHANGED)
        refusal = _refusal(write, group)
        return replace(found, result=ScaleResult.REFUSED, message=refusal) if refusal else found

    def _read(self, target: TargetReference) -> _Group:
        path = target_path(target, self._resolve)
        scale = self._get(f"{path}/scale")
        document = self._get(path)
        name = cluster_of(document)
        owner = TargetReference(target.api_version, "Cluster", target.namespace, name)
        cluster = None
        if name:
            try:
                cluster = self._get(target_path(owner, self._resolve))
            except NotFoundError:
                cluster = None
        return _Group(path, scale, replicas_of(scale), document, cluster)

    def _get(self, path: str) -> dict[str, Any]:
        return self._objects.get(path, seconds=READ_SECONDS).document

    def _take_marks_off(self, found: ScaleOutcome, terms: SendingTerms) -> ScaleOutcome:
        """Remove the marks of earlier removals, unless Cluster API may be about to act on them."""
        target = found.write.target
        if self._late.may_come(target):
            message = f"{target}: a smaller size may still take effect, so the marks of its Machines are left for now"
            return replace(found, result=ScaleResult.FENCED, message=message)
        for machine in found.write.unmarks:
            unmarked = self._annotate(found, machine, terms, mark=False)
            if unmarked.is_forbidden:
                return replace(unmarked, result=ScaleResult.REFUSED, message=_marks_stay(found.write, unmarked.message))
            if unmarked.result is not ScaleResult.OK:
                return unmarked
            about = fields(target=str(target), machine=machine.name, node=machine.node)
            _log.info("the mark of an earlier removal is removed", extra=about)
        return replace(found, result=ScaleResult.OK)

    def _remove(self, found: ScaleOutcome, group: _Group, terms: SendingTerms) -> ScaleOutcome:
        """Mark one Machine after the other, and lower the size by one after each mark.

        Sizes are absolute: after an attempt with an unknown outcome, the size shows how many have been removed.
        """
        write, scale, size = found.write, group.scale, group.size
        done, outcome = write.replicas + len(write.removals) - size, found
        for removal in write.removals[done:]:
            marked = self._annotate(found, removal, terms, mark=True)
            if marked.result is not ScaleResult.OK:
                return marked
            outcome, scale = self._lower_replicas(
                found, f"{group.path}/scale", with_replicas(scale, size - 1), removal, terms
            )
            if outcome.result is not ScaleResult.OK:
                return outcome
            size -= 1
        return replace(outcome, result=ScaleResult.OK)

    def _lower_replicas(
        self, found: ScaleOutcome, path: str, document: dict[str, Any], removal: MachineRemoval, terms: SendingTerms
    ) -> tuple[ScaleOutcome, dict[str, Any]]:
        answers: list[dict[str, Any]] = [document]

        def lower(fence: Fence) -> dict[str, Any]:
            with self._late.note(found.write.target, fence):
                answers.append(self._objects.replace(path, document, fence))
            return answers[-1]

        size = replicas_of(document)
        step = replace(found, before=size + 1, write=replace(found.write, replicas=size))
        outcome = replace(send_size(step, terms, lower), before=found.before, write=found.write)
        if outcome.result is not ScaleResult.OK and not self._late.may_come(found.write.target):
            # A Machine that stays marked would be the first to be removed whenever somebody lowers the size.
            self._annotate(found, removal, terms, mark=False)
        return outcome, answers[-1]

    def _annotate(
        self, found: ScaleOutcome, removal: MachineRemoval, terms: SendingTerms, *, mark: bool
    ) -> ScaleOutcome:
        """Mark a Machine, or remove the mark again; a mark that another client has set stays."""
        target = TargetReference(found.write.target.api_version, "Machine", removal.namespace, removal.name)
        try:
            path = target_path(target, self._resolve)
            machine = self._get(path)
        except (UnknownResourceError, KubernetesError) as error:
            return failed_outcome(replace(found, result=ScaleResult.ERROR), error)
        is_going = bool(text(machine, "metadata", "deletionTimestamp"))
        if mark and (is_going or node_of(machine) != removal.node):
            message = (
                f"{target} is being deleted, or is no longer that of node {removal.node}: the next decision takes "
                "this into account"
            )
            return replace(found, result=ScaleResult.REFUSED, message=message)
        is_marked = DELETE_MARK in section(machine, "metadata", "annotations")
        if is_marked == mark or is_going or (not mark and not has_own_mark(machine)):
            return replace(found, result=ScaleResult.OK)
        document = _annotations_of(machine, mark=mark)
        return send_write(found, terms, lambda fence: self._objects.replace(path, document, fence))


def _marks_stay(write: PendingWrite, reason: str) -> str:
    machines = write.unmarks
    named = ", ".join(machine.name for machine in machines)
    return (
        f"an earlier removal has left {DELETE_MARK} on Machines of {write.target}, so any smaller size deletes these "
        f"first: {named}; the mark cannot be removed: {reason}; grant get and update on Machines, as the chart does "
        f"where `markMachines` is written, also as `false`, or run {unmarking_command(machines)}"
    )


def _refusal(write: PendingWrite, group: _Group) -> str:
    """Return why the size must not be written now; empty if it may be."""
    try:
        low, high = bounds_of(group.document)
    except ScalableError as error:
        return str(error)
    return (
        write_problem(group.document, group.cluster)
        or limits_problem(write.replicas, group.size, low, high)
        or _removal_refusal(write, group)
    )


def _removal_refusal(write: PendingWrite, group: _Group) -> str:
    if not write.removals:
        if write.known_size not in {None, group.size}:
            return f"its size is now {group.size}, but {write.replicas} was decided at {write.known_size}"
        ready = whole(group.document, "status", "readyReplicas") or 0
        if write.replicas < group.size and write.replicas < ready:
            return f"{ready} of its nodes are ready, and none is marked for removal"
        return ""
    if write.target.kind == "MachinePool":
        return "the machines of a MachinePool cannot be chosen"
    decided = write.replicas + len(write.removals)
    if not write.replicas < group.size <= decided:
        return f"its size is now {group.size}, but the removal was decided at {decided}"
    return ""


def _annotations_of(machine: dict[str, Any], *, mark: bool) -> dict[str, Any]:
    metadata = machine["metadata"]
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != DELETE_MARK}
    if mark:
        annotations[DELETE_MARK] = OWN_MARK
    return {**machine, "metadata": {**metadata, "annotations": annotations}}
