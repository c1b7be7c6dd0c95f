"""The events of a recording as they are written: short JSON arrays, one per line.

A file begins with `Begin` and all present objects; the first `Alive` after them ends this list. Pods, nodes and kinds
of pods have numbers that are valid only in their file.
"""

from __future__ import annotations

from typing import Final

import msgspec

from adapter.foundation.cluster.values.constraints import LocalVolume, NodeSelectorTerm, PodScheduling, Toleration
from adapter.foundation.cluster.values.pods import ClusterPod, ControllerReference, SchedulingFacts
from adapter.foundation.cluster.values.state import ClusterNode, Taint
from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.objects.pod_requests import CPU, PodResources, units_of
from adapter.foundation.objects.quantities import Quantity
from adapter.foundation.objects.requirements import Operator, Requirement

VERSION: Final = 1
NO_NODE: Final = -1
_MILLI_NANOS: Final = 10**6
_UNIT_NANOS: Final = 10**9


class Begin(msgspec.Struct, frozen=True, array_like=True, tag="s"):
    """The file begins here."""

    version: int
    time: float


class Alive(msgspec.Struct, frozen=True, array_like=True, tag="t"):
    """Everything up to this time is recorded."""

    time: float


class TermForm(msgspec.Struct, frozen=True, array_like=True):
    """A term of required node affinity."""

    labels: tuple[tuple[str, Operator, tuple[str, ...]], ...]
    name_in: tuple[str, ...] | None
    name_not_in: tuple[str, ...]


class PodKindForm(msgspec.Struct, frozen=True, array_like=True, tag="k"):
    """The fields that all pods of one kind share."""

    number: int
    namespace: str
    owner: tuple[str, str, str] | None
    """API version, kind and name of the controller; None without one."""
    requests: dict[str, int]
    scored: dict[str, int]
    priority: int
    node_selector: dict[str, str]
    terms: tuple[TermForm, ...] | None
    tolerations: tuple[tuple[str, str, str, str], ...]
    annotations: dict[str, str]
    restart_policy: str
    local_volumes: tuple[tuple[str, LocalVolume], ...]
    problem: str
    looks_at_others: bool
    """Whether the pod has claims, ports, spread constraints or affinity to other pods, which are left out."""


class NodeCame(msgspec.Struct, frozen=True, array_like=True, tag="n"):
    """A node that exists."""

    time: float
    number: int
    name: str
    labels: dict[str, str]
    taints: tuple[tuple[str, str, str], ...]
    allocatable: dict[str, int]
    """CPU in millicores, everything else in bytes or counts."""
    annotations: dict[str, str]
    created: float


class NodeGone(msgspec.Struct, frozen=True, array_like=True, tag="m"):
    """A node that no longer exists."""

    time: float
    number: int


class PodCame(msgspec.Struct, frozen=True, array_like=True, tag="p"):
    """A pod that exists and has not ended."""

    number: int
    kind: int
    uid: str
    created: float
    node: int = NO_NODE
    bound: float = 0.0


class PodBound(msgspec.Struct, frozen=True, array_like=True, tag="b"):
    """A pod that was bound to its node."""

    number: int
    node: int
    bound: float


class PodGone(msgspec.Struct, frozen=True, array_like=True, tag="q"):
    """A pod that has ended or was deleted."""

    time: float
    number: int


RecordedEvent = Begin | Alive | PodKindForm | NodeCame | NodeGone | PodCame | PodBound | PodGone
EVENTS: Final = decoder_of(RecordedEvent)
_LAST_TIME: Final = 253_402_300_800.0
"""The end of the year 9999."""
_encoder: Final = msgspec.json.Encoder()


def refuse_impossible_time(event: RecordedEvent) -> None:
    """Raise OverflowError for an impossible time, except in a pod's own times, which affect only that pod."""
    if isinstance(event, Begin | Alive | NodeCame | NodeGone | PodGone) and not 0 <= event.time < _LAST_TIME:
        raise OverflowError(f"a time of {event.time:g} s since 1970 is impossible")


def line_of(event: RecordedEvent) -> bytes:
    """Return the line of an event."""
    return _encoder.encode(event) + b"\n"


def pod_kind_form(number: int, pod: ClusterPod) -> PodKindForm:
    """Return the fields that a pod shares with all pods of its kind."""
    facts, owner = pod.facts, pod.controller
    of = facts.scheduling if facts is not None else PodScheduling()
    return PodKindForm(
        number,
        pod.namespace,
        None if owner is None else (owner.api_version, owner.kind, owner.name),
        {name: amount for name, amount in pod.resources.requests.items() if amount},
        dict(pod.resources.non_zero_requests),
        pod.priority,
        dict(of.node_selector),
        None if of.node_terms is None else tuple(map(_term_form, of.node_terms)),
        tuple((one.key, one.operator, one.value, one.effect) for one in of.tolerations),
        {} if facts is None else dict(facts.annotations),
        "Always" if facts is None else facts.restart_policy,
        of.local_volumes,
        "" if facts is None else facts.owner_problem or facts.problem,
        bool(of.affinity or of.anti_affinity or of.spread or of.host_ports or of.claims or of.resource_claims),
    )


def _term_form(term: NodeSelectorTerm) -> TermForm:
    labels = tuple((one.key, one.operator, one.values) for one in term.labels)
    return TermForm(labels, term.name_in, term.name_not_in)


def pod_of(form: PodKindForm) -> ClusterPod:
    """Return a pod of this kind, which has neither name nor node."""
    owner = None
    if form.owner is not None:
        version, kind, name = form.owner
        owner = ControllerReference(version, kind, name, f"{kind}/{form.namespace}/{name}")
    scheduling = PodScheduling(
        node_selector=tuple(sorted(form.node_selector.items())),
        node_terms=None if form.terms is None else tuple(map(_term, form.terms)),
        tolerations=tuple(Toleration(*each) for each in form.tolerations),
        local_volumes=form.local_volumes,
    )
    return ClusterPod(
        namespace=form.namespace,
        name="",
        uid="",
        node="",
        labels={},
        controller=owner,
        phase="Running",
        is_terminating=False,
        bound_at=None,
        ended_at=None,
        priority=form.priority,
        resources=PodResources(requests=form.requests, non_zero_requests=form.scored),
        facts=SchedulingFacts(
            scheduling, form.annotations, 0.0, None, 30.0, form.restart_policy, owner_problem=form.problem
        ),
    )


def _term(form: TermForm) -> NodeSelectorTerm:
    labels = tuple(Requirement(*each) for each in form.labels)
    return NodeSelectorTerm(labels, form.name_in, form.name_not_in)


def node_came(time: float, number: int, node: ClusterNode) -> NodeCame:
    """Return the event that a node exists."""
    return NodeCame(
        time,
        number,
        node.name,
        dict(node.labels),
        tuple((taint.key, taint.value, taint.effect) for taint in node.taints),
        {name: units_of(name, amount) for name, amount in node.allocatable.items()},
        dict(node.annotations),
        time if node.created is None else node.created,
    )


def node_of(form: NodeCame) -> ClusterNode:
    """Return the node that an event describes; it counts as ready."""
    offered = {
        name: Quantity(amount * (_MILLI_NANOS if name == CPU else _UNIT_NANOS))
        for name, amount in form.allocatable.items()
    }
    return ClusterNode(
        name=form.name,
        labels=form.labels,
        taints=tuple(Taint(*each) for each in form.taints),
        unschedulable=False,
        conditions={"Ready": "True"},
        created=form.created,
        capacity=offered,
        allocatable=offered,
        annotations=form.annotations,
    )
