"""Estimates that are made once for all groups whose new nodes are alike to the pods."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.cluster.values.constraints import HOSTNAME_LABEL
from recommender.kinds.cluster_size.estimator.binpacking import estimate
from recommender.kinds.cluster_size.model.resources import amounts_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from recommender.kinds.cluster_size.estimator.estimate_model import Estimate, PodGroup
    from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeTemplate
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
    from recommender.kinds.cluster_size.scale_up.existing_node_placement import Placer

_Signature: TypeAlias = tuple[frozenset[tuple[str, int]], frozenset[tuple[str, int]], int]
"""The resources that new nodes have left beside their own pods; they alone determine how many independent pods fit."""


@dataclass(frozen=True, slots=True)
class _Estimated:
    """An estimate and its limit."""

    max_nodes: int
    result: Estimate

    def answers(self, max_nodes: int) -> bool:
        """Return whether the estimate is the same with this limit."""
        if max_nodes == self.max_nodes:
            return True
        return not self.result.limit and max_nodes >= self.result.opened


class SharedEstimates:
    """The estimates so far.

    Those of pods that depend on no other pods hold for the whole decision, and others for one round. In a shared
    estimate, the names of new nodes are those of the first group.
    """

    def __init__(self, snapshot: Snapshot, placer: Placer) -> None:
        self._snapshot = snapshot
        self._placer = placer
        self._independent: dict[Hashable, list[_Estimated]] = {}
        self._of_round: dict[Hashable, list[_Estimated]] = {}
        self._signatures: dict[str, _Signature] = {}
        self._own_pods: dict[str, Hashable] = {}
        self._label_keys: dict[tuple[PodGroup, ...], frozenset[str] | None] = {}
        self._strange_names = snapshot.strange_names()

    def begin_round(self) -> None:
        """Forget what changes with the pods that have a place."""
        self._of_round.clear()
        self._label_keys.clear()

    def estimate(self, group: NodeGroup, pods: tuple[PodGroup, ...], max_nodes: int) -> Estimate:
        """Return the estimate for a group, whose empty new node must be able to take each of the pods."""
        template = group.template
        assert template is not None, "groups without a template are left out"
        known = self._of_alike_nodes(group.name, template, pods)
        for one in known:
            if one.answers(max_nodes):
                return one.result
        result = estimate(self._snapshot, pods, template, name_prefix=_prefix(group.name), max_nodes=max_nodes)
        known.append(_Estimated(max_nodes, result))
        return result

    def _of_alike_nodes(self, name: str, template: NodeTemplate, pods: tuple[PodGroup, ...]) -> list[_Estimated]:
        """Return the list of the estimates so far for nodes that are alike to these pods."""
        keys = self._keys_of(pods)
        if keys is None or any(strange.startswith(_prefix(name)) for strange in self._strange_names):
            return []
        signature = self._signature(name, template)
        if all(self._placer.filter_of(each.shape).is_independent for each in pods):
            return self._independent.setdefault((signature, pods), [])
        likeness = self._likeness(name, template, keys)
        return self._of_round.setdefault((signature, likeness, pods), [])

    def _signature(self, name: str, template: NodeTemplate) -> _Signature:
        known = self._signatures.get(name)
        if known is None:
            taken: Counter[str] = Counter()
            for pod in template.pods:
                taken.update(self._snapshot.shape(pod).requests)
            offered = frozenset(amounts_of(template.node.allocatable).items())
            known = self._signatures[name] = (offered, frozenset(taken.items()), len(template.pods))
        return known

    def _likeness(self, name: str, template: NodeTemplate, keys: frozenset[str]) -> Hashable:
        """Return in what else nodes may differ to pods of which some depend on others; `keys` are labels that count.

        Taints, the labels of node affinity and the terms of the nodes' own pods do not count: an empty node of the
        group is known to take each of the pods.
        """
        labels = template.node.labels
        found = frozenset((key, labels[key]) for key in keys if key in labels and key != HOSTNAME_LABEL)
        known = self._own_pods.get(name)
        if known is None:
            own = Counter(_effects_of(self._snapshot.shape(pod)) for pod in template.pods)
            known = self._own_pods[name] = frozenset(own.items())
        return found, known

    def _keys_of(self, pods: tuple[PodGroup, ...]) -> frozenset[str] | None:
        """Return the labels that may decide on any of the pods; None if names of nodes do, too."""
        if pods not in self._label_keys:
            keys = [self._placer.filter_of(shape).label_keys for shape in dict.fromkeys(each.shape for each in pods)]
            read = [each for each in keys if each is not None]
            self._label_keys[pods] = frozenset[str]().union(*read) if len(read) == len(keys) else None
        return self._label_keys[pods]


def _prefix(group: str) -> str:
    return f"{group}-new"


def _effects_of(shape: PodShape) -> Hashable:
    """Return what a pod of a new node itself means to other pods."""
    asked = shape.scheduling
    return (
        shape.namespace,
        frozenset(shape.labels.items()),
        frozenset(shape.requests.items()),
        (asked.host_ports, asked.claims, asked.inline_volumes),
        asked.anti_affinity,
    )
