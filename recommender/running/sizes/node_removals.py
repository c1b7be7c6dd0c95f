"""Drains and deletes nodes through the provider of their group, one step after the other.

The state of a removal is a mark on its node (`removal_marks`). A process may thus end at any moment: the next one
continues the removal, or makes the node usable again. Each step reads first and is repeated until it has an effect,
except the deletion: it is requested from the provider only once, after the mark has recorded the request.
"""

from __future__ import annotations

import itertools
import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, KubernetesError, NotFoundError
from adapter.foundation.sources.kubernetes.lists.small_list import items_of_list
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.node_groups.fields import text
from recommender.outputs.event_rules import TargetEvent
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import READ_SECONDS, ScaleOutcome, SendingTerms, failed_outcome, send_write
from recommender.running.sizes.evictable_pods import (
    EVICTION_SECONDS,
    EvictedPod,
    eviction_of,
    leaving_pods,
    obstacle_to,
    pods_to_evict,
)
from recommender.running.sizes.machine_deletion import UNCERTAIN_SECONDS, MachineDeletion
from recommender.running.sizes.removal_marks import (
    REMOVAL,
    RemovalMark,
    deletions_since,
    is_cordoned,
    is_of_another,
    mark_of,
    marked_node,
    reason_to_stay,
    remedy_of,
    unmarked_node,
    without_future,
)
from recommender.running.sizes.removal_progress import (
    ENDING_SECONDS,
    PROVIDER_SECONDS,
    SETTLE_SECONDS,
    DeletionDelays,
    FirstPods,
    RemovalTimes,
    WholeRemovals,
)

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from adapter.foundation.sources.kubernetes.writing import Fence, ListsAndCreates, Replaces
    from adapter.foundation.time.clock import Clock
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.outputs.pending_writes import NodeRemoval

_log = logging.getLogger(__name__)

_PODS: Final = "/api/v1/pods"
_STEP_SECONDS: Final = 1.0
_LEFT_OVER_STEPS: Final = 60
"""If no removal is configured, marks of an earlier configuration are looked for once in this many steps."""
_RETRY_SECONDS: Final = 5.0
"""Time after which a refused eviction is tried again."""


@dataclass(slots=True, kw_only=True)
class NodeRemovals:
    """Carries removals out. `begin` may be called from any thread."""

    objects: ListsAndCreates
    writes: Replaces
    fence: Fence
    deletion: MachineDeletion
    cluster: Callable[[], ClusterState]
    """Returns the state of the cluster, in which marked nodes are found as far as nodes are known."""
    stopped: Callable[[RemovalMark], str]
    """Returns why a removal must not continue, such as a changed configuration; empty if it may continue."""
    rules: Callable[[RemovalMark], ClusterSizeSettings]
    """Returns the settings by which pods keep the node of a removal."""
    is_configured: Callable[[], bool]
    """Returns whether the configuration in force removes nodes at all."""
    announce: Callable[[TargetEvent], None]
    owner: str
    """Distinguishes this recommender, by its Lease, from others of the cluster."""
    clock: Clock
    _states: StateLog = field(default_factory=lambda: StateLog(_log))
    _times: RemovalTimes = field(init=False)
    _evicts_at: dict[str, float] = field(default_factory=dict)
    """When refused evictions of a node are tried again, by the monotonic clock."""
    _first_pods: FirstPods = field(default_factory=FirstPods)
    _delays: DeletionDelays = field(default_factory=DeletionDelays)
    _whole: WholeRemovals = field(default_factory=WholeRemovals)
    _marks: Mapping[str, RemovalMark] = field(default_factory=dict)
    """The marks of all nodes in the last state of the cluster, by node."""
    _deleted: set[str] = field(default_factory=set)
    """The nodes whose deletion this process has requested."""

    def __post_init__(self) -> None:
        self._times = RemovalTimes(self.clock)

    def begin(self, found: ScaleOutcome, removal: NodeRemoval, terms: SendingTerms) -> ScaleOutcome:
        """Cordon, taint and mark a node, unless it is marked already."""
        write, path = found.write, _path(removal.node)
        try:
            node = self.objects.get(path, seconds=READ_SECONDS).document
        except KubernetesError as error:
            return failed_outcome(replace(found, result=ScaleResult.ERROR), error)
        refusal = reason_to_stay(node, self.owner)
        if refusal:
            message = f"{removal.node} is not removed: {refusal}"
            return replace(found, result=ScaleResult.REFUSED, message=message)
        if mark_of(node) is not None:
            return replace(found, result=ScaleResult.OK)
        mark = RemovalMark(
            recommendation=write.recommendation,
            provider=write.target.namespace,
            group=write.target.name,
            since=self.clock.wall(),
            cordoned=not is_cordoned(node),
            whole=removal.whole,
            owner=self.owner,
        )
        return send_write(found, terms, lambda fence: self.writes.replace(path, marked_node(node, mark), fence))

    def run(self, stop: threading.Event) -> None:
        """Continue all removals until `stop` is set."""
        for number in itertools.count():
            if stop.wait(_STEP_SECONDS):
                return
            if self.is_configured() or number % _LEFT_OVER_STEPS == 0:
                self.step()

    def step(self) -> None:
        """Advance each removal by one step, if this process may write."""
        known = self.cluster().nodes
        nodes = known.value if isinstance(known, Observed) else ()
        names = [node.name for node in nodes if REMOVAL in node.annotations]
        self._evicts_at = {name: at for name, at in self._evicts_at.items() if name in names}
        self._deleted.intersection_update(names)
        for each in (self._first_pods, self._delays, self._times):
            each.keep(names)
        self._marks = {
            node.name: mark
            for node in nodes
            if (mark := mark_of({"metadata": {"annotations": node.annotations}})) is not None
        }
        self._whole.see(self._marks)
        for name in names:
            if not self._may_write():
                return
            try:
                self._advance(name)
            except NotFoundError:
                self._states.recovered(name, "the node is gone", node=name)
            except KubernetesError as error:
                remedy = f"; {remedy_of(name)}" if isinstance(error, ForbiddenError) else ""
                self._states.failed(name, f"the removal of the node waits: {error}{remedy}", node=name)

    def _advance(self, name: str) -> None:
        node = self.objects.get(_path(name), seconds=READ_SECONDS).document
        mark = mark_of(node)
        if mark is not None and is_of_another(mark, self.owner, self._times.seconds_since(name, mark.since)):
            return
        if mark is None:
            if REMOVAL in (node["metadata"].get("annotations") or {}):
                self._roll_back(node, f"its annotation {REMOVAL} cannot be read")
            return
        stored, mark = mark, without_future(mark, self.clock.wall())
        if mark != stored:
            node = self.writes.replace(_path(name), marked_node(node, mark), self.fence)
        if mark.deleting_since is not None:
            self._follow(node, mark, mark.deleting_since)
            return
        settings, waited = self.rules(mark), self._times.seconds_since(name, mark.since)
        present = self._pods(name)
        pods = leaving_pods(present, settings, mark.since, waited)
        obstacle = self.stopped(mark) or obstacle_to(pods, settings)
        left = pods_to_evict(pods, self._first_pods.of(name, mark.since, present, waited), mark.since)
        is_drained = not left and waited >= SETTLE_SECONDS
        is_ready = is_drained and not self._delays.is_delayed(node, mark.since, self.clock.monotonic())
        self._whole.note(name, is_drained=is_ready and not obstacle)
        obstacle = obstacle or self._whole.obstacle(mark, waited) or self._whole.lateness(mark, waited)
        if obstacle:
            self._roll_back(node, obstacle)
        elif left:
            if self.clock.monotonic() >= self._evicts_at.get(name, 0.0):
                self._evict(node, left, waited)
        elif is_ready and not self._whole.waits(mark):
            self._delete(node, mark)

    def _may_write(self) -> bool:
        return self.fence.permit(self.fence.seconds)

    def _pods(self, node: str) -> tuple[Mapping[str, Any], ...]:
        """Return the pods of a node. Pods of other nodes are never evicted, whatever the server returns."""
        query = {"fieldSelector": f"spec.nodeName={node}"}
        document = self.objects.get(_PODS, query, seconds=READ_SECONDS).document
        return tuple(pod for pod in items_of_list(_PODS, document, "Pod") if text(pod, "spec", "nodeName") == node)

    def _evict(self, node: dict[str, Any], pods: tuple[EvictedPod, ...], waited: float) -> None:
        """Evict pods that can still end in time, within their disruption budgets; give up after a while."""
        late = [pod for pod in pods if not pod.is_terminating and waited + pod.grace_seconds > ENDING_SECONDS]
        if late:
            self._roll_back(node, f"{late[0]} was not evicted within {waited:.0f} s, and it is too late for that now")
            return
        refusals: list[str] = []
        for pod in pods:
            # Many evictions take longer than the Lease may last.
            if not self._may_write():
                return
            if not pod.is_terminating and (why := self._refused_eviction(pod)):
                refusals.append(why)
        if refusals:
            self._evicts_at[text(node, "metadata", "name")] = self.clock.monotonic() + _RETRY_SECONDS
        if refusals and waited > EVICTION_SECONDS:
            self._roll_back(node, f"not all pods could be evicted within {EVICTION_SECONDS:.0f} s: {refusals[0]}")
        elif waited > ENDING_SECONDS:
            self._roll_back(node, f"{pods[0]} has not ended within {waited:.0f} s")

    def _refused_eviction(self, pod: EvictedPod) -> str:
        """Evict a pod; return why the eviction was refused, or an empty string."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
        try:
            self.objects.create(path, eviction_of(pod), seconds=READ_SECONDS)
        except NotFoundError:
            return ""
        except KubernetesError as error:
            # A 429 comes from a PodDisruptionBudget; as with a failing server, the eviction is tried again.
            return f"{pod}: {error}"
        return ""

    def _delete(self, node: dict[str, Any], mark: RemovalMark) -> None:
        """Let the provider delete the machine. The mark records the request first, and the call is sent only once."""
        name, now = text(node, "metadata", "name"), self.clock.wall()
        others = {other: found for other, found in self._marks.items() if other not in {name, *self._deleted}}
        unseen = deletions_since(now - UNCERTAIN_SECONDS, mark, others.values())
        problem = self.deletion.problem_of(node, mark, unseen)
        if problem.waits:
            self._states.failed(name, f"the removal of the node waits: {problem.message}", node=name)
            if self._times.seconds_since(name, mark.since) > PROVIDER_SECONDS:
                self._roll_back(node, problem.message)
            return
        if problem.message:
            self._roll_back(node, problem.message)
            return
        self._deleted.add(name)
        begun = msgspec.structs.replace(mark, deleting_since=self._times.now(name))
        node = self.writes.replace(_path(name), marked_node(node, begun), self.fence)
        problem = self.deletion.delete(node, begun)
        if problem.waits:
            self._states.failed(name, f"the end of the node's deletion is not known: {problem.message}", node=name)
        elif problem.message:
            self._roll_back(node, problem.message)
        else:
            self._accept(node, begun)

    def _follow(self, node: dict[str, Any], mark: RemovalMark, since: float) -> None:
        """Check the outcome of a deletion that was requested from the provider. It is never requested again."""
        waited = self._times.seconds_since(text(node, "metadata", "name"), since)
        if not mark.accepted and self.deletion.is_under_way(node, mark):
            self._accept(node, mark)
        elif waited > self.deletion.longest_seconds(mark):
            self._roll_back(node, "its machine was to be deleted, and is still there")

    def _accept(self, node: dict[str, Any], mark: RemovalMark) -> None:
        name = text(node, "metadata", "name")
        self._states.recovered(name, "the removal of the node goes on", node=name)
        message = f"recommendation {mark.recommendation}: node {name} of {mark.group} is deleted"
        self.announce(_event(node, "NodeRemoved", message))
        accepted = msgspec.structs.replace(mark, accepted=True)
        self.writes.replace(_path(name), marked_node(node, accepted), self.fence)

    def _roll_back(self, node: dict[str, Any], reason: str) -> None:
        """Make the node usable again, and report the reason in the log and in an event."""
        name = text(node, "metadata", "name")
        self.writes.replace(_path(name), unmarked_node(node, self.clock.wall()), self.fence)
        self._states.failed(name, f"the node is not removed, and takes pods again: {reason}", node=name)
        message = f"the node is not removed, and takes pods again: {reason}"
        self.announce(replace(_event(node, "RemovalFailed", message), is_warning=True))


def _event(node: Mapping[str, Any], reason: str, message: str) -> TargetEvent:
    target = TargetReference("v1", "Node", "", text(node, "metadata", "name"))
    return TargetEvent(target, reason, message, uid=text(node, "metadata", "uid"))


def _path(node: str) -> str:
    return f"/api/v1/nodes/{node}"
