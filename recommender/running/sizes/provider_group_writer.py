"""Changes the sizes of providers' groups by differences, as providers require: each change is sent at most once.

A group also becomes smaller by the deletion of failed machines, or, in steps of their own, by the removal of nodes.

The size is read first, since it shows the effect of a call with an unknown outcome. After such a call, nothing is sent
for the group until its size has changed, or until five minutes have passed. An accepted change may be shown late, and
a decision that began before its end requests the same nodes again, so nothing relative to the former size is sent while
that is still shown, for up to 75 s.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.sources.kubernetes.errors import FencedError
from recommender.kinds.cluster_size.model.groups import limits_problem
from recommender.kinds.cluster_size.node_groups.plugin_host import ProviderUnreachableError
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginError, PluginGroup
from recommender.kinds.cluster_size.node_groups.protocol import OutcomeUnknownError, WritableNodeGroup
from recommender.kinds.cluster_size.requested_sizes import INHERITED_SECONDS
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome, SendingTerms, send_write, stored_first
from recommender.running.sizes.failed_machine_deletion import deletion_refusal, nodes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.cluster.values.state import ClusterState
    from adapter.foundation.sources.kubernetes.writing import Fence
    from adapter.foundation.time.clock import Clock
    from recommender.decisions.record import TargetReference
    from recommender.outputs.pending_writes import NodeRemoval, PendingWrite
    from recommender.running.sizes.plugin_hosts import WritesGroups

_UNCERTAIN_SECONDS: Final = 300.0
"""How long nothing is sent for a group after a call with an unknown outcome, unless the size of the group changes."""


@dataclass(frozen=True, slots=True)
class _Unseen:
    """A change whose effect has not been seen: it may not have taken effect, or is shown late."""

    size: int
    """The size that was found before the change."""
    until: float
    """When the wait for its effect ends, by the monotonic clock."""


@dataclass(slots=True)
class ProviderAttempt:
    """Changes the size of a group through its provider, or begins the removal of its nodes."""

    groups: WritesGroups
    begin_removal: Callable[[ScaleOutcome, NodeRemoval, SendingTerms], ScaleOutcome]
    """Marks a node, and returns the outcome. The steps that follow take minutes."""
    cluster: Callable[[], ClusterState]
    """Returns the current state of the cluster."""
    clock: Clock
    _uncertain: dict[TargetReference, _Unseen] = field(default_factory=dict)
    """The last calls with an unknown outcome."""
    _accepted: dict[TargetReference, _Unseen] = field(default_factory=dict)
    """The last calls that providers accepted."""

    def __call__(self, write: PendingWrite, terms: SendingTerms) -> ScaleOutcome:
        """Change the size if the current limits and size allow it."""
        target = write.target
        if self.clock.wall() < write.waits_until:
            message = f"{target} may still be asked for nodes by a former process: its size is looked at again soon"
            return ScaleOutcome(write, ScaleResult.FENCED, message=message)
        try:
            group = self.groups.look(write.recommendation, target.namespace, target.name)
        except ProviderUnreachableError as error:
            return ScaleOutcome(write, ScaleResult.ERROR, message=str(error), is_of_the_server=True)
        found = self._outcome_before_change(write, group)
        if found.result is not ScaleResult.OK:
            return found
        stored = stored_first(found, terms)
        if stored.result is not ScaleResult.OK:
            return stored
        return self._begin_removals(stored, terms) if write.node_removals else self._change_size(stored, group, terms)

    def _outcome_before_change(self, write: PendingWrite, group: PluginGroup) -> ScaleOutcome:
        """Return the outcome at the current size: OK if a change may be sent."""
        found = ScaleOutcome(write, ScaleResult.OK, group.target_size)
        if group.target_size == write.replicas:
            self._uncertain.pop(write.target, None)
            return replace(found, result=ScaleResult.UNCHANGED)
        shown = f"its size is still {group.target_size}"
        if self._is_unseen(self._uncertain, write.target, group):
            message = f"the end of the last call is not known, and {shown}"
            return replace(found, result=ScaleResult.ERROR, message=message)
        refusal = _refusal(write, group)
        if write.machines and not refusal:
            refusal = deletion_refusal(write, group, self.cluster(), self.clock.wall())
        if refusal:
            return replace(found, result=ScaleResult.REFUSED, message=refusal)
        is_relative = not (write.machines or write.node_removals)
        if is_relative and self._is_unseen(self._accepted, write.target, group):
            message = f"the last change was accepted, and {shown}: the next decision looks at it again"
            return replace(found, result=ScaleResult.FENCED, message=message, is_outdated=True)
        return found

    def _is_unseen(self, calls: dict[TargetReference, _Unseen], target: TargetReference, group: PluginGroup) -> bool:
        """Return whether the effect of the last of these calls is still waited for."""
        known = calls.get(target)
        if known is None:
            return False
        if known.size == group.target_size and self.clock.monotonic() < known.until:
            return True
        del calls[target]
        return False

    def _unseen(self, group: PluginGroup, seconds: float) -> _Unseen:
        return _Unseen(group.target_size, self.clock.monotonic() + seconds)

    def _change_size(self, found: ScaleOutcome, group: PluginGroup, terms: SendingTerms) -> ScaleOutcome:
        write, target = found.write, found.write.target
        delta = write.replicas - group.target_size

        def change(group: WritableNodeGroup) -> None:
            if write.machines:
                group.delete_nodes(nodes_of(write.machines))
            elif delta > 0:
                group.increase_size(delta)
            else:
                group.decrease_target_size(delta)

        def send(fence: Fence) -> None:
            if not fence.permit(fence.seconds):
                raise FencedError(f"{target}: the Lease would have ended before the change")
            self.groups.change(write.recommendation, target.namespace, target.name, change)

        try:
            outcome = send_write(found, terms, send)
        except OutcomeUnknownError as error:
            self._uncertain[target] = self._unseen(group, _UNCERTAIN_SECONDS)
            message = f"{error}: it may have taken effect, so nothing is asked again before its size shows that"
            return replace(found, result=ScaleResult.ERROR, message=message)
        except PluginError as error:
            return replace(found, result=ScaleResult.ERROR, message=str(error))
        except ProviderUnreachableError as error:
            return replace(found, result=ScaleResult.ERROR, message=str(error), is_of_the_server=True)
        if outcome.result is ScaleResult.OK:
            self._accepted[target] = self._unseen(group, INHERITED_SECONDS)
        return outcome

    def _begin_removals(self, found: ScaleOutcome, terms: SendingTerms) -> ScaleOutcome:
        begun = found
        for removal in found.write.node_removals:
            begun = self.begin_removal(found, removal, terms)
            if begun.result is not ScaleResult.OK:
                break
        return begun


def _refusal(write: PendingWrite, group: PluginGroup) -> str:
    """Return why the size must not be changed now; empty if it may be."""
    if write.known_size not in {None, group.target_size}:
        return f"its size is now {group.target_size}, but {write.replicas} was decided at {write.known_size}"
    outside = limits_problem(write.replicas, group.target_size, group.min_size, group.max_size)
    if outside:
        return outside
    takes_back = not (write.node_removals or write.machines)
    if write.replicas < group.target_size and takes_back and write.replicas < len(group.instances):
        return (
            f"{len(group.instances)} of its machines exist, and a decrease of its size may only take back those that "
            "have not come"
        )
    return ""
