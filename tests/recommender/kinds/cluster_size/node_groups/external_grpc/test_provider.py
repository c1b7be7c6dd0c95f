"""Groups of a provider that speaks Cluster Autoscaler's gRPC protocol."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import grpc
import pytest

from recommender.cluster_size.node_groups.contract import check_provider
from recommender.kinds.cluster_size.model.groups import ProviderReference
from recommender.kinds.cluster_size.model.size_settings import ExternalGrpcGroups
from recommender.kinds.cluster_size.node_groups.external_grpc.provider import ExternalGrpcProvider
from recommender.kinds.cluster_size.node_groups.plugin_host import PluginHost
from recommender.kinds.cluster_size.node_groups.plugin_reading import MOST_GROUPS, PluginError
from recommender.kinds.cluster_size.node_groups.protocol import OutcomeUnknownError
from recommender.kinds.cluster_size.wire import external_grpc_pb2 as wire
from tests.recommender.kinds.cluster_size.node_groups.external_grpc.harnesses import (
    NODES,
    groups_of,
    served,
    settings,
    two_groups,
)
from tests.support.grpc_provider import CloudGroup, GrpcProvider, ProviderFaultError, node_bytes, options
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from recommender.kinds.cluster_size.model.size_settings import ProviderSettings


@pytest.mark.parametrize("form", ["bytes", "embedded"])
def test_groups_are_read_in_both_forms_of_the_protocol(form: Literal["bytes", "embedded"]) -> None:
    with served(GrpcProvider(*two_groups(), form=form)) as host:
        found = groups_of(host.read(NODES))
    large, small = found.groups
    assert found.problems == ()
    assert (small.name, small.nodes, small.min_size, small.max_size, small.target_size) == (
        "small",
        ("n1", "n2"),
        0,
        5,
        2,
    )
    assert (small.price, large.price, small.provider) == (0.1, None, ProviderReference("externalGRPC"))
    assert large.template is not None
    assert (str(large.template.node.allocatable["cpu"]), large.template.node.labels["pool"]) == ("16", "large")
    assert found.group_of == {"n1": "small", "n2": "small"}


def test_the_reason_why_a_machine_cannot_be_created_is_read() -> None:
    error = wire.InstanceErrorInfo(errorCode="NO_STOCK", errorMessage="none\nleft", instanceErrorClass=1)
    states = {
        "2": wire.InstanceStatus.instanceCreating,
        "8": wire.InstanceStatus.instanceCreating,
        "9": wire.InstanceStatus.instanceRunning,
    }
    machines = [
        wire.Instance(id=f"x:///{name}", status=wire.InstanceStatus(instanceState=state, errorInfo=error))
        for name, state in states.items()
    ]
    provider = GrpcProvider(*two_groups())
    provider.instead["NodeGroupNodes"] = lambda _: wire.NodeGroupNodesResponse(instances=machines)
    with served(provider) as host:
        small = groups_of(host.read(NODES)).groups[1]
    assert small.failures == ("NO_STOCK: none left",), "not of a machine that runs, and not of one that is a node"


def test_options_equal_to_the_defaults_override_nothing() -> None:
    own = CloudGroup("own", options=options(unneeded_seconds=60, threshold=0.7))
    with served(GrpcProvider(CloudGroup("same"), own)) as host:
        found = {group.name: group.options for group in host.read(NODES).groups}
    assert found["same"] == replace(found["same"], utilization_threshold_ratio=None, unneeded_seconds=None)
    assert (found["own"].utilization_threshold_ratio, found["own"].unneeded_seconds) == (0.7, 60.0)
    assert found["own"].max_node_provision_seconds is None, "a time that is not stated is no override"


def test_unimplemented_optional_calls_are_not_repeated() -> None:
    provider = GrpcProvider(CloudGroup("a"), CloudGroup("b"))
    missing = ("NodeGroupTemplateNodeInfo", "NodeGroupGetOptions", "PricingNodePrice", "GPULabel")

    def unimplemented(_: object) -> object:
        raise ProviderFaultError("not implemented", grpc.StatusCode.UNIMPLEMENTED)

    provider.instead = dict.fromkeys(missing, unimplemented)
    with served(provider) as host:
        for _ in range(2):
            reading = host.read(NODES)
    assert [group.problem for group in reading.groups] == ["", ""]
    assert sorted(provider.made(*missing)) == sorted([*missing[:2], *missing[:2], "GPULabel"]), "not for each decision"


def test_options_and_templates_that_a_wrapper_lacks_are_not_errors() -> None:
    provider = GrpcProvider(CloudGroup("a", machines=["x:///1"]))
    provider.instead = dict.fromkeys(
        ("NodeGroupGetOptions", "NodeGroupTemplateNodeInfo"), _fail(grpc.StatusCode.UNKNOWN)
    )
    with served(provider) as host:
        [group] = groups_of(host.read(NODES)).groups
    assert (group.problem, group.options.unneeded_seconds) == ("", None)
    assert group.template is not None
    assert group.template.source == "node n1"


def test_the_label_of_nodes_with_gpus_is_requested_again_after_a_call_that_failed() -> None:
    provider = GrpcProvider(*two_groups())
    provider.gpu_label = "example.com/gpu"
    provider.instead = {"GPULabel": _fail(grpc.StatusCode.UNKNOWN)}
    with served(provider) as host:
        assert {group.gpu_label for group in groups_of(host.read(NODES)).groups} == {""}
        provider.instead.clear()
        for _ in range(2):
            labels = {group.gpu_label for group in groups_of(host.read(NODES)).groups}
    assert labels == {"example.com/gpu"}
    assert len(provider.made("GPULabel")) == 2


def test_the_provider_fulfils_the_contract_of_plugins() -> None:
    provider = GrpcProvider(*two_groups())
    check_provider(ExternalGrpcProvider(settings(provider.start())))
    provider.stop()


def _fail(code: grpc.StatusCode) -> Callable[[object], object]:
    def fail(_: object) -> object:
        raise ProviderFaultError("out of order", code)

    return fail


NONSENSE: dict[str, tuple[str, Callable[[wire.GroupRequest], object], str]] = {
    "a size below 0": (
        "NodeGroupTargetSize",
        lambda _: wire.NodeGroupTargetSizeResponse(targetSize=-1),
        "target_size()",
    ),
    "bytes that are not a message": ("NodeGroupTargetSize", lambda _: b"\xff\xff\xff", "NodeGroupTargetSize: INTERNAL"),
    "a call that fails": ("NodeGroupNodes", _fail(grpc.StatusCode.UNKNOWN), "NodeGroupNodes: UNKNOWN: out of order"),
    "a machine twice": (
        "NodeGroupNodes",
        lambda _: wire.NodeGroupNodesResponse(instances=[wire.Instance(id="m"), wire.Instance(id="m")]),
        "the provider id 'm' twice",
    ),
    "a template that is not a Node": (
        "NodeGroupTemplateNodeInfo",
        lambda _: wire.NodeGroupTemplateNodeInfoResponse(nodeBytes=b"\xff\xff"),
        "does not return a Node",
    ),
    "a quantity that cannot be read": (
        "NodeGroupTemplateNodeInfo",
        lambda _: wire.NodeGroupTemplateNodeInfoResponse(nodeBytes=node_bytes(CloudGroup("x", cpu="many"))),
        "does not return a Node",
    ),
    "a share above 1": (
        "NodeGroupGetOptions",
        lambda _: wire.NodeGroupAutoscalingOptionsResponse(nodeGroupAutoscalingOptions=options(threshold=40.0)),
        "shares are 0 to 1",
    ),
    "options that cannot be read": (
        "NodeGroupGetOptions",
        _fail(grpc.StatusCode.INTERNAL),
        "NodeGroupGetOptions: INTERNAL",
    ),
    "a price that is not a number": (
        "PricingNodePrice",
        lambda _: wire.PricingNodePriceResponse(price=float("nan")),
        "price() returns nan",
    ),
}


@pytest.mark.parametrize(("method", "answer", "problem"), NONSENSE.values(), ids=NONSENSE)
def test_only_the_group_with_an_invalid_answer_is_left_out(
    method: str, answer: Callable[[wire.GroupRequest], object], problem: str
) -> None:
    provider = GrpcProvider(CloudGroup("good"), CloudGroup("odd"))

    def odd(request: wire.GroupRequest | wire.PricingNodePriceRequest) -> object:
        name = request.node.labels["pool"] if isinstance(request, wire.PricingNodePriceRequest) else request.id
        return answer(request) if name == "odd" else provider.usual(method, request)  # type: ignore[arg-type]

    provider.instead = {method: odd}
    with served(provider) as host:
        good, odd_group = host.read(NODES).groups
    assert (good.problem, odd_group.name) == ("", "odd")
    assert problem in odd_group.problem


def test_a_group_listed_twice_or_without_an_id_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    provider = GrpcProvider(CloudGroup("a"), CloudGroup("b"))
    listed = [wire.NodeGroup(id=name, maxSize=3) for name in ("a", "b", "b", "")]
    provider.instead = {"NodeGroups": lambda _: wire.NodeGroupsResponse(nodeGroups=listed)}
    with served(provider) as host:
        for _ in range(3):
            a, b = host.read(NODES).groups
    assert (a.problem, b.problem) == ("", "NodeGroups lists the id twice")
    assert caplog.text.count("without an id") == 1


def test_a_provider_that_goes_away_keeps_its_groups_for_a_minute() -> None:
    now = 0.0
    provider = GrpcProvider(*two_groups())
    address = provider.start()
    host = PluginHost(settings(address), seconds=30.0, clock=lambda: now)
    assert len(host.read(NODES).groups) == 2
    provider.stop()
    now = 59.0
    kept = host.read(NODES)
    assert [group.name for group in kept.groups] == ["small", "large"]
    assert "Refresh: UNAVAILABLE" in kept.kept_because
    assert groups_of(kept).problems[0].startswith("the node groups of externalGRPC are those of its last answer: ")
    now = 61.0
    gone = groups_of(host.read(NODES))
    host.close()
    assert gone.groups == ()
    assert gone.problems[0].startswith("the node groups of externalGRPC are left out: Refresh: UNAVAILABLE: ")
    assert gone.problems[0].endswith(f": check that the provider at {address} runs and answers")


def test_a_hanging_provider_is_waited_for_only_once() -> None:
    released, provider = threading.Event(), GrpcProvider(*two_groups())
    provider.instead = {"NodeGroups": lambda _: released.wait(60.0) and wire.NodeGroupsResponse()}
    host = PluginHost(settings(provider.start(), 30.0), seconds=0.05)
    assert host.read(NODES).problem == "it has not answered within 0.05 s"
    # On a busy machine the call may reach the provider only after these 0.05 s.
    until(lambda: provider.made("NodeGroups"))
    assert "has not ended" in host.read(NODES).problem
    assert provider.made("Refresh", "NodeGroups") == ["Refresh", "NodeGroups"]
    released.set()
    provider.stop()


def test_a_call_ends_at_its_deadline() -> None:
    released, provider = threading.Event(), GrpcProvider(*two_groups())
    provider.instead = {"NodeGroupNodes": lambda _: released.wait(60.0) and wire.NodeGroupNodesResponse()}
    with served(provider, 3.0) as host:
        reading = host.read(())
        released.set()
    assert {group.problem.partition(": ")[2][:17] for group in reading.groups} == {"DEADLINE_EXCEEDED"}


@pytest.mark.parametrize("methods", [["NodeGroupTargetSize", "NodeGroupNodes"], ["NodeGroupTemplateNodeInfo"]])
def test_groups_that_never_answer_leave_time_for_the_others(methods: list[str]) -> None:
    now = [0.0]
    ends: dict[tuple[str, str], float] = {}
    is_second = threading.Event()
    provider = GrpcProvider(*(CloudGroup(name) for name in ("odd-1", "odd-2", "good-1", "good-2")))

    def late(method: str) -> Callable[[wire.GroupRequest], object]:
        def answer(request: wire.GroupRequest) -> object:
            if request.id.startswith("good"):
                return provider.usual(method, request)
            # Sizes and nodes of all groups are requested at once, and templates one after another.
            batch = (method, request.id if method == "NodeGroupTemplateNodeInfo" else "")
            # The second decision does not wait for the sizes and nodes of groups that were silent in the first.
            if not (is_second.is_set() and batch[1] == ""):
                now[0] = max(now[0], ends.setdefault(batch, now[0] + 5.0))
            raise ProviderFaultError("too late", grpc.StatusCode.DEADLINE_EXCEEDED)

        return answer

    def load(stated: ProviderSettings) -> ExternalGrpcProvider:
        assert isinstance(stated, ExternalGrpcGroups)
        return ExternalGrpcProvider(stated, clock=lambda: now[0])

    provider.instead = {method: late(method) for method in methods}
    with served(provider, load=load) as host:
        host.read(())
        now[0] += 20.0
        ends.clear()
        is_second.set()
        problems = {group.name: group.problem for group in host.read(()).groups}
    assert problems.keys() == {"odd-1", "odd-2", "good-1", "good-2"}
    assert not problems["good-1"] + problems["good-2"]
    assert "DEADLINE_EXCEEDED: too late" in problems["odd-1"]


def test_a_price_that_is_not_answered_in_time_keeps_its_last_value() -> None:
    now, provider = [0.0], GrpcProvider(*two_groups())

    def load(stated: ProviderSettings) -> ExternalGrpcProvider:
        assert isinstance(stated, ExternalGrpcGroups)
        return ExternalGrpcProvider(stated, clock=lambda: now[0])

    def late(_: object) -> object:
        raise ProviderFaultError("too late", grpc.StatusCode.DEADLINE_EXCEEDED)

    with served(provider, load=load) as host:
        host.read(NODES)
        provider.instead["PricingNodePrice"] = late
        now[0] += 400.0
        prices = {group.name: group.price for group in host.read(NODES).groups}
    assert prices == {"small": 0.1, "large": None}


def test_a_template_that_a_provider_fails_to_state_again_stays() -> None:
    now, provider = [0.0], GrpcProvider(CloudGroup("empty", 0, 3, price=0.2))

    def load(stated: ProviderSettings) -> ExternalGrpcProvider:
        assert isinstance(stated, ExternalGrpcGroups)
        return ExternalGrpcProvider(stated, clock=lambda: now[0])

    with served(provider, load=load) as host:
        before = groups_of(host.read(())).groups
        assert before[0].template is not None
        provider.instead["NodeGroupTemplateNodeInfo"] = _fail(grpc.StatusCode.UNKNOWN)
        now[0] += 400.0
        assert groups_of(host.read(())).groups == before
        del provider.instead["NodeGroupTemplateNodeInfo"]
        now[0] += 16.0
        host.read(())
        assert len(provider.made("NodeGroupTemplateNodeInfo")) == 3, "asked again soon"


def test_no_group_is_queried_if_a_provider_lists_too_many() -> None:
    provider = GrpcProvider()
    listed = [wire.NodeGroup(id=f"g{number}", maxSize=3) for number in range(MOST_GROUPS + 1)]
    provider.instead = {"NodeGroups": lambda _: wire.NodeGroupsResponse(nodeGroups=listed)}
    with served(provider) as host:
        assert host.read(NODES).problem.startswith("it lists 5001 node groups, and at most 5000 can be read")
    assert not provider.made("NodeGroupTargetSize")


def test_the_group_of_a_node_is_queried_only_once_in_a_while() -> None:
    provider = GrpcProvider(*two_groups())
    with served(provider) as host:
        for _ in range(3):
            host.read(NODES[:2])
    assert len(provider.made("NodeGroupForNode")) == 2
    assert len(provider.made("Refresh")) == 3


def test_nodes_outside_of_all_groups_are_not_queried_each_time_either() -> None:
    group = CloudGroup("small", 0, 5, ["x:///1"])
    provider = GrpcProvider(group)
    with served(provider) as host:
        for _ in range(3):
            assert host.read(NODES).group_of == {"n1": "small"}
        assert len(provider.made("NodeGroupForNode")) == 3
        group.machines.append("x:///2")
        assert host.read(NODES).group_of == {"n1": "small", "n2": "small"}, "its machine is listed now"


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        (grpc.StatusCode.UNAVAILABLE, OutcomeUnknownError),
        (grpc.StatusCode.INTERNAL, OutcomeUnknownError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, OutcomeUnknownError),
        (grpc.StatusCode.FAILED_PRECONDITION, PluginError),
        (grpc.StatusCode.UNKNOWN, PluginError),
    ],
)
def test_a_change_whose_call_failed_in_transport_has_an_unknown_outcome(
    code: grpc.StatusCode, raised: type[Exception]
) -> None:
    provider = GrpcProvider(*two_groups())
    provider.instead = {"NodeGroupIncreaseSize": _fail(code)}
    with served(provider) as host:
        host.read(NODES)
        with pytest.raises(raised, match=code.name):
            host.change("small", lambda group: group.increase_size(1))


def test_a_node_whose_group_cannot_be_queried_belongs_to_the_group_of_its_machine() -> None:
    provider = GrpcProvider(*two_groups())
    provider.instead = {"NodeGroupForNode": _fail(grpc.StatusCode.UNKNOWN)}
    with served(provider) as host:
        assert host.read(NODES).group_of == {"n1": "small", "n2": "small"}
