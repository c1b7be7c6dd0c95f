"""States in one sentence why no group can hold some pods: a missing label, resource or toleration, or a limit.

The reasons of each group, in the scheduler's words, name only the first plugin that refuses. Here, all requirements are
compared with all groups, to find the requirement that no group meets, or else the closest group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from adapter.foundation.objects.amount_texts import amount_text
from adapter.foundation.objects.grouping import group_values
from adapter.foundation.objects.requirements import Operator
from adapter.foundation.reports.counts import first_names
from recommender.kinds.cluster_size.predicates.node_affinity import matches_a_term
from recommender.kinds.cluster_size.predicates.node_info import new_node_info, take
from recommender.kinds.cluster_size.predicates.taint_toleration import untolerated_taint
from recommender.kinds.cluster_size.predicates.template_nodes import own_pods
from recommender.kinds.cluster_size.predicates.volumes.volume_filter import VolumeFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from adapter.foundation.cluster.values.constraints import NodeSelectorTerm
    from adapter.foundation.cluster.values.state import ClusterNode
    from adapter.foundation.objects.requirements import Requirement
    from recommender.kinds.cluster_size.model.groups import NodeGroup
    from recommender.kinds.cluster_size.predicates.node_info import NodeInfo
    from recommender.kinds.cluster_size.predicates.pod_shapes import PodShape, Refusal
    from recommender.kinds.cluster_size.predicates.snapshot import Snapshot

_JUDGED: Final = frozenset({"NodeAffinity", "TaintToleration", "NodeResourcesFit"})
"""The plugins whose requirements are compared one by one."""
_MOST_CHOICES: Final = 2
"""The most different remedies that a sentence names."""


@dataclass(frozen=True, slots=True)
class Lack:
    """A requirement of a pod that a group does not meet."""

    need: str
    """The requirement, such as `disk=nvme` or `8 nvidia.com/gpu`; in the scheduler's words if it does not depend on the
    node alone."""
    resource: str = ""
    """The resource that is missing; empty if the requirement is of another kind."""
    is_refusal: bool = False
    """Whether `need` is in the scheduler's words."""
    is_toleration: bool = False
    """Whether the pod lacks a toleration; otherwise, the group lacks what the pod requires."""


@dataclass(frozen=True)
class _Offer:
    """An empty new node of a group."""

    name: str
    info: NodeInfo

    @property
    def node(self) -> ClusterNode:
        return self.info.node

    def amount_left(self, resource: str) -> int:
        """Return how much of a resource pods may request; DaemonSets may request more than there is."""
        return max(0, self.info.allocatable.get(resource, 0) - self.info.requested.get(resource, 0))


class MissingRequirements:
    """The labels and resources of all groups, for comparison with the requirements of pods."""

    def __init__(self, groups: Mapping[str, NodeGroup], snapshot: Snapshot) -> None:
        self._groups = groups
        self._snapshot = snapshot

    @cached_property
    def _offers(self) -> tuple[_Offer, ...]:
        return tuple(_Offer(name, self._new_node(group)) for name, group in self._groups.items())

    def _new_node(self, group: NodeGroup) -> NodeInfo:
        assert group.template is not None, "groups without a template are left out"
        info = new_node_info(group.template.node, is_added=True)
        for pod in own_pods(group.template, group.name):
            take(info, self._snapshot.shape(pod), 1)
        return info

    def sentence(self, shape: PodShape, refusals: Mapping[str, Sequence[Refusal]], obstacles: Mapping[str, str]) -> str:
        """Return what is missing; `refusals` has those of each tried group, `obstacles` why others cannot grow."""
        if obstacles:
            return _limits(obstacles)
        if not self._offers:
            return "no node group can be judged"
        volumes = VolumeFilter(self._snapshot.storage, self._snapshot.census.claim_uses, shape)
        lacks = {
            offer.name: _lacks(shape, offer, refusals.get(offer.name, ()), volumes.refusals(offer.info))
            for offer in self._offers
        }
        first = lacks[self._offers[0].name]
        common = [lack for lack in first if all(lack in each for each in lacks.values())]
        if common:
            return self._nowhere(common[0])
        fewest = min(map(len, lacks.values()))
        nearest = group_values((lacks[one.name], one) for one in self._offers if len(lacks[one.name]) == fewest)
        return "; ".join(_but_for(offers, missing) for missing, offers in list(nearest.items())[:_MOST_CHOICES])

    def _nowhere(self, lack: Lack) -> str:
        if lack.is_refusal:
            return f"every group refuses it: {lack.need}"
        if lack.is_toleration:
            return f"needs {lack.need}; every group has this taint"
        if not lack.resource:
            return f"needs {lack.need}; no group has it"
        best = max(self._offers, key=lambda offer: offer.amount_left(lack.resource))
        most = best.amount_left(lack.resource)
        if most <= 0:
            return f"needs {lack.need}; no group has it"
        names = first_names(offer.name for offer in self._offers if offer.amount_left(lack.resource) == most)
        offered = amount_text(lack.resource, most, rounds_up=False)
        return f"needs {lack.need}; the most on a new node is {offered} ({names})"


def _but_for(offers: Sequence[_Offer], lacks: Iterable[Lack]) -> str:
    """Return what keeps pods from the closest groups, with the available amount of a resource."""
    names = first_names(offer.name for offer in offers)
    needs, refusal = [], ""
    for lack in lacks:
        if lack.is_refusal:
            refusal = f"{names} {'refuses' if len(offers) == 1 else 'refuse'} it: {lack.need}"
            continue
        left = amount_text(lack.resource, min(offer.amount_left(lack.resource) for offer in offers), rounds_up=False)
        needs.append(f"{lack.need} (a new node has {left})" if lack.resource else lack.need)
    if not refusal:
        return f"{names} would do but for {_joined_texts(needs)}"
    return f"{refusal}, and it needs {_joined_texts(needs)}" if needs else refusal


def _limits(obstacles: Mapping[str, str]) -> str:
    """Return which groups could hold the pods if they could grow, and why they cannot; groups share each reason."""
    by_reason = group_values((reason, name) for name, reason in obstacles.items())
    return "; ".join(f"{first_names(names)} would do, but {reason}" for reason, names in by_reason.items())


def _lacks(
    shape: PodShape, offer: _Offer, refusals: Sequence[Refusal], of_volumes: Sequence[Refusal]
) -> tuple[Lack, ...]:
    """Return what an empty new node of a group lacks.

    If that does not explain the refusal, the reason of the scheduler is added. `of_volumes` are the refusals of filters
    of volumes: these run after the filters that are compared here, so `refusals` may not contain theirs.
    """
    found = tuple(_unmet(shape, offer))
    if refusals and (not found or refusals[0].plugin not in _JUDGED or of_volumes):
        first = of_volumes[0] if of_volumes and refusals[0].plugin in _JUDGED else refusals[0]
        return (*found, Lack(str(first), is_refusal=True))
    return found


def _unmet(shape: PodShape, offer: _Offer) -> Iterator[Lack]:
    """Yield the requirements that a new node does not meet by itself, labels first."""
    labels = offer.node.labels
    scheduling = shape.scheduling
    for key, value in scheduling.node_selector:
        if labels.get(key) != value:
            yield Lack(f"{key}={value}")
    if scheduling.node_terms is not None:
        yield from _unmatched_requirements(scheduling.node_terms, offer.node)
    for resource, amount in shape.requests.items():
        if amount > offer.amount_left(resource):
            yield Lack(f"{amount_text(resource, amount, rounds_up=True)} {resource}", resource)
    if offer.info.pod_count >= offer.info.allocatable.get("pods", 0):
        yield Lack("room for one more pod")
    taint = untolerated_taint(offer.node, scheduling.tolerations)
    if taint is not None:
        value = f"={taint.value}" if taint.value else ""
        yield Lack(f"a toleration of {taint.key}{value}:{taint.effect}", is_toleration=True)


def _unmatched_requirements(terms: tuple[NodeSelectorTerm, ...], node: ClusterNode) -> Iterator[Lack]:
    """Yield the requirements of a single term that the node does not meet; several terms are one requirement."""
    if matches_a_term(terms, node.labels, node.name):
        return
    if len(terms) == 1:
        [term] = terms
        unmet = [_requirement_text(one) for one in term.labels if not one.matches(node.labels)]
        yield from map(Lack, unmet or [_term_text(term)])
    else:
        yield Lack(" or ".join(dict.fromkeys(map(_term_text, terms))))


def _term_text(term: NodeSelectorTerm) -> str:
    parts = [_requirement_text(one) for one in term.labels]
    if term.name_in is not None:
        parts.append(f"the node {first_names(term.name_in)}")
    if term.name_not_in:
        parts.append(f"another node than {first_names(term.name_not_in)}")
    return " and ".join(parts) or "a node that an empty term matches, which is none"


def _requirement_text(one: Requirement) -> str:
    if one.operator is Operator.IN and len(one.values) == 1:
        return f"{one.key}={one.values[0]}"
    if one.operator is Operator.EXISTS:
        return f"the label {one.key}"
    if one.operator is Operator.DOES_NOT_EXIST:
        return f"a node without the label {one.key}"
    return str(one)


def _joined_texts(texts: Iterable[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last
