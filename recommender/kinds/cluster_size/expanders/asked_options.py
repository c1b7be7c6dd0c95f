"""Converts the options that Cluster Autoscaler asks about, and chooses one of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from google.protobuf.message import DecodeError

from adapter.foundation.cluster.values.state import ClusterPod
from adapter.foundation.objects.pod_requests import ContainerSpec, PodResourcesError, PodSpecResources, pod_resources
from adapter.foundation.objects.quantities import QuantityError, parse_quantity
from recommender.kinds.cluster_size.estimator.estimate_model import Estimate, ExpansionOption
from recommender.kinds.cluster_size.expanders.chain import choose
from recommender.kinds.cluster_size.model.groups import NodeGroup, NodeTemplate
from recommender.kinds.cluster_size.node_groups.templates import stated_node
from recommender.kinds.cluster_size.wire.expander_pb2 import BestOptionsRequest, BestOptionsResponse
from recommender.kinds.cluster_size.wire.kubernetes_pb2 import Node, Pod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from recommender.kinds.cluster_size.expanders.expander_context import ExpanderContext
    from recommender.kinds.cluster_size.model.size_settings import NodeGroupSources
    from recommender.kinds.cluster_size.wire.expander_pb2 import Option
    from recommender.kinds.cluster_size.wire.kubernetes_pb2 import Container, Quantity

_UNKNOWN_POD: Final = PodSpecResources()


class TooLateError(Exception):
    """The options cannot be compared in time."""


@dataclass(frozen=True, slots=True)
class ExpanderRules:
    """The rules by which options are compared."""

    expanders: tuple[str, ...]
    context: ExpanderContext
    prices: Mapping[str, float]
    """The price of a node, by the name of its group."""


@dataclass(frozen=True, slots=True)
class BestOption:
    """The chosen group, and the reason."""

    response: BestOptionsResponse
    group: str
    """The name of the group; empty if there is none."""
    reason: str


def best_option(
    request: BestOptionsRequest, rules: ExpanderRules, is_late: Callable[[], bool] = lambda: False
) -> BestOption:
    """Return the option that the expanders choose, or an empty group if none is left. Raises TooLateError.

    A node that cannot be read counts as offering nothing, and a pod that cannot be read as requesting nothing.
    """
    nodes = request.nodeBytesMap or request.nodeMap
    pods: dict[bytes, ClusterPod] = {}
    options: list[ExpansionOption] = []
    for asked in request.options:
        found: list[ClusterPod] = []
        for content in asked.podBytes or asked.pod:
            if is_late():
                raise TooLateError
            pod = pods.get(content)
            if pod is None:
                pod = pods[content] = _pod(content)
            found.append(pod)
        group = _group(asked.nodeGroupId, nodes.get(asked.nodeGroupId), rules.prices)
        options.append(ExpansionOption(group, Estimate(max(0, asked.nodeCount), tuple(found))))
    if not options:
        return BestOption(BestOptionsResponse(), "", "there is no option")
    choice = choose(options, rules.expanders, rules.context)
    if choice.option is None:
        return BestOption(BestOptionsResponse(), "", choice.reason)
    chosen = _asked_of(request.options, choice.option.group.name)
    return BestOption(BestOptionsResponse(options=[chosen]), chosen.nodeGroupId, choice.reason)


def stated_prices(sources: NodeGroupSources) -> dict[str, float]:
    """Return the prices that the configuration states, by Cluster Autoscaler's names of the groups."""
    found: dict[str, float] = {}
    for stated in (sources.by_label, sources.cluster_api, sources.external_grpc):
        if stated is not None:
            found.update(stated.prices)
    found.update({group.name: group.price for group in sources.static if group.price is not None})
    return found


def _asked_of(options: Sequence[Option], group: str) -> Option:
    """Return the option of a group without its pods, since Cluster Autoscaler already has them."""
    found = next(each for each in options if each.nodeGroupId == group)
    answer = type(found)()
    answer.nodeGroupId, answer.nodeCount, answer.debug = found.nodeGroupId, found.nodeCount, found.debug
    return answer


def _group(name: str, content: bytes | None, prices: Mapping[str, float]) -> NodeGroup:
    price = prices.get(name, prices.get(name.rpartition("/")[2]))
    return NodeGroup(name, 0, 0, 0, template=None if not content else _template(name, content), price=price)


def _template(name: str, content: bytes) -> NodeTemplate | None:
    try:
        node = Node.FromString(content)
        capacity = {key: parse_quantity(each.string) for key, each in node.status.capacity.items()}
        allocatable = {key: parse_quantity(each.string) for key, each in node.status.allocatable.items()}
    except (DecodeError, QuantityError):
        return None
    return NodeTemplate(stated_node(name, {**capacity, **allocatable}, dict(node.metadata.labels), (), capacity))


def _pod(content: bytes) -> ClusterPod:
    namespace, name, spec = "", "", _UNKNOWN_POD
    try:
        pod = Pod.FromString(content)
        namespace, name = pod.metadata.namespace, pod.metadata.name
        spec = PodSpecResources(
            containers=_containers(pod.spec.containers),
            init_containers=_containers(pod.spec.initContainers),
            overhead=_texts(pod.spec.overhead),
            requests=_texts(pod.spec.resources.requests),
            limits=_texts(pod.spec.resources.limits),
        )
        resources = pod_resources(spec)
    except (DecodeError, PodResourcesError):
        resources = pod_resources(_UNKNOWN_POD)
    return ClusterPod(
        namespace=namespace,
        name=name,
        uid="",
        node="",
        labels={},
        controller=None,
        phase="",
        is_terminating=False,
        bound_at=None,
        ended_at=None,
        priority=0,
        resources=resources,
    )


def _containers(found: Iterable[Container]) -> tuple[ContainerSpec, ...]:
    return tuple(
        ContainerSpec(
            each.name,
            _texts(each.resources.requests),
            _texts(each.resources.limits),
            restarts_always=each.restartPolicy == "Always",
        )
        for each in found
    )


def _texts(found: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: each.string for name, each in found.items()}
