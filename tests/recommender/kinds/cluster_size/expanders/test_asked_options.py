"""Requests of Cluster Autoscaler to its gRPC expander, in both forms of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.kinds.cluster_size.expanders.asked_options import (
    ExpanderRules,
    TooLateError,
    best_option,
    stated_prices,
)
from recommender.kinds.cluster_size.expanders.expander_context import ExpanderContext
from recommender.kinds.cluster_size.expanders.priorities import compile_priorities
from recommender.kinds.cluster_size.model.size_settings import ClusterApiGroups, LabelGroups, NodeGroupSources
from recommender.kinds.cluster_size.wire.expander_pb2 import BestOptionsRequest, Option
from recommender.kinds.cluster_size.wire.kubernetes_pb2 import (
    Container,
    ObjectMeta,
    Pod,
    PodSpec,
    Quantity,
    ResourceRequirements,
)
from tests.support.grpc_provider import CloudGroup, node_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping


def pods(count: int, cpu: str = "1", memory: str = "1Gi") -> list[bytes]:
    amounts = {"cpu": Quantity(string=cpu), "memory": Quantity(string=memory)}
    spec = PodSpec(containers=[Container(name="main", resources=ResourceRequirements(requests=amounts))])
    return [
        Pod(metadata=ObjectMeta(namespace="shop", name=f"web-{number}"), spec=spec).SerializeToString()
        for number in range(count)
    ]


def asked(options: Mapping[str, tuple[int, list[bytes], str]], form: Literal["bytes", "embedded"] = "bytes") -> bytes:
    """Return a request with the number of nodes, the pods and the CPU of a node for each group."""
    request = BestOptionsRequest()
    for name, (count, contents, cpu) in options.items():
        option = Option(nodeGroupId=name, nodeCount=count, debug=f"{name}!")
        (option.podBytes if form == "bytes" else option.pod).extend(contents)
        request.options.append(option)
        nodes = request.nodeBytesMap if form == "bytes" else request.nodeMap
        nodes[name] = node_bytes(CloudGroup(name, cpu=cpu, memory="16Gi"))
    return request.SerializeToString()


def rules(*expanders: str, prices: Mapping[str, float] | None = None, priorities: str = "") -> ExpanderRules:
    compiled = compile_priorities({10: (priorities,)}, "priorities") if priorities else None
    return ExpanderRules(expanders, ExpanderContext(21, 0, compiled), prices or {})


OPTIONS = {"large": (1, pods(3), "16"), "small": (1, pods(3), "4"), "few": (2, pods(2), "4")}
CHOICES = [
    (rules("least-waste"), "small"),
    (rules("most-pods", "least-waste"), "small"),
    (rules("least-nodes", "price", prices={"large": 0.1, "small": 3.0}), "large"),
    (rules("priority", priorities="^few$"), "few"),
]


@pytest.mark.parametrize("form", ["bytes", "embedded"])
@pytest.mark.parametrize(("chosen_by", "group"), CHOICES)
def test_the_expanders_of_the_configuration_decide(
    chosen_by: ExpanderRules, group: str, form: Literal["bytes", "embedded"]
) -> None:
    found = best_option(BestOptionsRequest.FromString(asked(OPTIONS, form)), chosen_by)
    [option] = found.response.options
    assert (option.nodeGroupId, option.debug, found.group) == (group, f"{group}!", group)
    assert option.nodeCount == OPTIONS[group][0]
    assert found.reason


def test_without_options_the_response_is_empty() -> None:
    assert len(best_option(BestOptionsRequest(), rules("least-waste")).response.options) == 0


MAIN = Container(name="main", resources=ResourceRequirements(requests={"cpu": Quantity(string="1")}))
TEN_CORES = ResourceRequirements(requests={"cpu": Quantity(string="10")})


@pytest.mark.parametrize(
    ("spec", "unused_percent"),
    [
        (PodSpec(containers=[MAIN], overhead=dict(TEN_CORES.requests)), 66),
        (PodSpec(containers=[MAIN], resources=TEN_CORES), 69),
        (PodSpec(containers=[MAIN], initContainers=[Container(name="init", resources=TEN_CORES)]), 69),
        (
            PodSpec(
                containers=[MAIN],
                initContainers=[Container(name="sidecar", resources=TEN_CORES, restartPolicy="Always")],
            ),
            66,
        ),
    ],
    ids=["overhead", "pod level", "init container", "sidecar"],
)
def test_pods_request_what_the_scheduler_adds_up(spec: PodSpec, unused_percent: int) -> None:
    content = [Pod(metadata=ObjectMeta(namespace="shop", name="web"), spec=spec).SerializeToString()]
    found = best_option(
        BestOptionsRequest.FromString(asked({"one": (1, content, "16"), "two": (2, content, "16")})),
        rules("least-waste"),
    )
    # All of the memory, and 5 or 6 of 16 cores.
    assert found.reason.startswith(f"least-waste: {unused_percent}% of CPU and memory unused")


def test_a_node_that_cannot_be_read_is_chosen_last_and_an_unreadable_pod_requests_nothing() -> None:
    request = BestOptionsRequest.FromString(asked(OPTIONS))
    request.nodeBytesMap["small"] = b"\xff\xff"
    request.options[2].podBytes[:] = [b"\xff"]
    assert best_option(request, rules("least-waste")).group == "large"


def test_a_choice_that_takes_too_long_is_aborted() -> None:
    with pytest.raises(TooLateError):
        best_option(BestOptionsRequest.FromString(asked(OPTIONS)), rules("least-waste"), lambda: True)


@given(st.binary(max_size=80), st.lists(st.binary(max_size=40), max_size=4), st.integers(-(2**31), 2**31 - 1))
def test_no_content_of_a_request_causes_a_failure(node: bytes, contents: list[bytes], count: int) -> None:
    request = BestOptionsRequest(options=[Option(nodeGroupId="a", nodeCount=count, podBytes=contents)])
    request.options.append(Option(nodeGroupId="b", nodeCount=1, podBytes=pods(1)))
    request.nodeBytesMap["a"] = node
    request.nodeBytesMap["b"] = node_bytes(CloudGroup("b"))
    assert best_option(request, rules("least-waste", "price")).group in {"a", "b"}


def test_configured_prices_are_found_by_cluster_autoscaler_s_names() -> None:
    sources = NodeGroupSources(
        cluster_api=ClusterApiGroups(("capi",), prices={"workers": 0.3}),
        by_label=LabelGroups("pool", prices={"pool-1": 0.1}),
    )
    assert stated_prices(sources) == {"workers": 0.3, "pool-1": 0.1}
    name = "MachineDeployment/capi/workers"
    found = best_option(
        # By its name, the other group would come first.
        BestOptionsRequest.FromString(asked({name: (1, pods(1), "4"), "A": (1, pods(1), "4")})),
        rules("price", prices=stated_prices(sources)),
    )
    assert found.group == name
