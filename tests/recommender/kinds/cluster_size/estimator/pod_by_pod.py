"""The rule of the estimate, applied pod by pod, as the reference for the code that places many at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL
from recommender.kinds.cluster_size.predicates.filters import PodFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.foundation.cluster.values.state import ClusterPod
    from recommender.kinds.cluster_size.estimator.estimate_model import PodGroup
    from recommender.kinds.cluster_size.model.groups import NodeTemplate
    from recommender.kinds.cluster_size.predicates.snapshot import NodeInfo, Snapshot


@dataclass
class PodByPod:
    snapshot: Snapshot
    template: NodeTemplate
    max_nodes: int
    opened: list[str] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    """The node of each placed pod."""
    may_open: bool = True

    def estimate(self, groups: Sequence[PodGroup]) -> dict[str, str]:
        """Place the pods of groups that are already ordered; return the node of each that has one."""
        mark = self.snapshot.checkpoint()
        for group in groups:
            rest = self._on_opened(list(group.pods))
            if self.may_open:
                self.may_open = self._on_new(rest)
        self.snapshot.revert(mark)
        return self.places

    def _on_opened(self, pods: list[ClusterPod]) -> list[ClusterPod]:
        for index, pod in enumerate(pods):
            if not self._first_fit(pod, (self.snapshot.nodes[name] for name in self.opened)):
                return pods[index:]
        return []

    def _on_new(self, pods: list[ClusterPod]) -> bool:
        for pod in pods:
            if self.opened:
                last = self.snapshot.nodes[self.opened[-1]]
                refusals = self._filter(pod).refusals(last)
                if not refusals:
                    self._place(pod, last)
                    continue
                if self._is_about_hosts(pod) and any("topology spread constraints" in one.reason for one in refusals):
                    others = (info for info in self.snapshot.nodes.values() if info is not last)
                    if self._first_fit(pod, others):
                        continue
                if self.opened[-1] not in self.places.values():
                    return True
            if self.max_nodes <= len(self.opened):
                return False
            opened = self._open()
            if not self._filter(pod).fits(opened):
                return True
            self._place(pod, opened)
        return True

    def _first_fit(self, pod: ClusterPod, nodes: Iterable[NodeInfo]) -> bool:
        judge = self._filter(pod)
        info = next(filter(judge.fits, nodes), None)
        if info is not None:
            self._place(pod, info)
        return info is not None

    def _open(self) -> NodeInfo:
        name = f"new-{len(self.opened)}"
        self.opened.append(name)
        node = self.template.node
        named = replace(node, name=name, labels={**node.labels, HOSTNAME_LABEL: name})
        return self.snapshot.add_node(named, [replace(pod, name=f"{pod.name}-{name}") for pod in self.template.pods])

    def _place(self, pod: ClusterPod, info: NodeInfo) -> None:
        self.snapshot.place(pod, info.node.name)
        self.places[pod.name] = info.node.name

    def _filter(self, pod: ClusterPod) -> PodFilter:
        return PodFilter(self.snapshot, self.snapshot.shape(pod))

    @staticmethod
    def _is_about_hosts(pod: ClusterPod) -> bool:
        assert pod.facts is not None
        return any(each.topology_key == HOSTNAME_LABEL for each in pod.facts.scheduling.spread)
