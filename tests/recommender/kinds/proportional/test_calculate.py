"""A value with its steps is calculated from inputs and memory."""

from __future__ import annotations

import math
from typing import Final

import pytest

from adapter.foundation.cluster.values.state import CountQuery, Observed, Unknown
from recommender.decisions.calculation import CalculationError, InputMissingError
from recommender.decisions.inputs import ConfigMapData
from recommender.decisions.loop import decide
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.policy_settings import RecommendationPolicy
from recommender.kinds.proportional.calculate import calculate_proportional
from recommender.kinds.proportional.memory import LastParameters, ProportionalMemory, restore_memory
from recommender.kinds.proportional.parameters import (
    Driver,
    DriverQuery,
    Interpolated,
    Ladder,
    Linear,
    Mode,
    ParametersConfigMap,
    ProportionalSettings,
    ResourceStep,
)
from recommender.kinds.proportional.sizes import ContainerSizes
from tests.recommender.kinds.proportional.clusters import CONFIG_MAP, NOW, calculated, inputs_of, nodes_of, step_texts

COREDNS: Final = Linear(256, 16, min=2, max=50, prevent_single_point_failure=True)
SERVICES: Final = CountQuery("services")
FROM_CONFIG_MAP: Final = ProportionalSettings(config_map=ParametersConfigMap(*CONFIG_MAP))
QUERY: Final = Driver("query", DriverQuery("sum(up)"), per_replica=10)

STEPS: Final[dict[str, tuple[Mode, tuple[int, int], int, str, list[str]]]] = {
    "nodes win a tie": (
        COREDNS,
        (176, 2816),
        11,
        "linear/nodes",
        ["linear/nodes 11: ceil(176 / 16)", "linear/cores 11: ceil(2816 / 256)", "largest 11: nodes 11, cores 11"],
    ),
    "cores win": (
        Linear(1.5, 3.3),
        (10, 16),
        11,
        "linear/cores",
        ["linear/nodes 4: ceil(10 / 3.3)", "linear/cores 11: ceil(16 / 1.5)", "largest 11: nodes 4, cores 11"],
    ),
    "max": (
        Linear(0, 1, max=3),
        (9, 9),
        3,
        "max",
        ["linear/nodes 9: ceil(9 / 1)", "largest 9: nodes 9", "max 3: max 3"],
    ),
    "min": (
        Linear(0, 10, min=3),
        (9, 9),
        3,
        "min",
        ["linear/nodes 1: ceil(9 / 10)", "largest 1: nodes 1", "min 3: min 3"],
    ),
    "two replicas for two nodes, beyond max": (
        Linear(0, 10, max=1, prevent_single_point_failure=True),
        (12, 9),
        2,
        "preventSinglePointFailure",
        [
            "linear/nodes 2: ceil(12 / 10)",
            "largest 2: nodes 2",
            "max 1: max 1",
            "preventSinglePointFailure 2: at least 2 on 12 nodes",
        ],
    ),
    "an empty ladder": (
        Ladder(),
        (3, 3),
        0,
        "ladder/nodes",
        ["ladder/nodes 0: the ladder is empty", "largest 0: nodes 0"],
    ),
    "rungs": (
        Ladder(((1, 1), (64, 3), (512, 5)), ((1, 1), (2, 2))),
        (100, 400),
        3,
        "ladder/cores",
        ["ladder/nodes 2: rung [2, 2] for 100", "ladder/cores 3: rung [64, 3] for 400", "largest 3: nodes 2, cores 3"],
    ),
    "below the first rung": (
        Ladder(nodes_to_replicas=((5, 4),)),
        (3, 3),
        4,
        "ladder/nodes",
        ["ladder/nodes 4: below the first rung [5, 4] for 3", "largest 4: nodes 4"],
    ),
    "between rungs": (
        Interpolated(((64, 3), (512, 5)), ((1, 0), (2, 9)), max=8),
        (1, 65),
        4,
        "interpolated/cores",
        [
            "interpolated/nodes 0: rung [1, 0] for 1",
            "interpolated/cores 4: ceil(3 + (65 - 64) * (5 - 3) / (512 - 64))",
            "largest 4: nodes 0, cores 4",
        ],
    ),
    "a ratio close to 0": (
        Linear(0, 5e-324, max=7),
        (3, 3),
        7,
        "max",
        ["linear/nodes 9.0072e+15: ceil(3 / 5e-324)", "largest 9.0072e+15: nodes 9007199254740992", "max 7: max 7"],
    ),
}


@pytest.mark.parametrize(("mode", "size", "replicas", "binding", "steps"), STEPS.values(), ids=STEPS)
def test_each_step_is_recorded(
    mode: Mode, size: tuple[int, int], replicas: int, binding: str, steps: list[str]
) -> None:
    calculation = calculated(ProportionalSettings(mode=mode), inputs_of(nodes_of(*size)))
    assert (calculation.replicas, calculation.binding, step_texts(calculation)) == (replicas, binding, steps)


def test_inputs_are_recorded() -> None:
    settings = ProportionalSettings(mode=COREDNS, drivers=(Driver("services", SERVICES, per_replica=100), QUERY))
    queries = {"sum(up)": Observed(12.5, NOW - 20)}
    calculation = calculated(settings, inputs_of(nodes_of(3, 12, 5, 20), counts={SERVICES: 900}, queries=queries))
    assert calculation.inputs == {
        "nodes": 5,
        "schedulable_nodes": 3,
        "cores": 20,
        "schedulable_cores": 12,
        "services": 900,
        "query": 12.5,
    }
    assert calculation.confirmed == NOW - 20
    assert calculation.binding == "linear/services"
    assert step_texts(calculation)[2:] == [
        "linear/services 9: ceil(900 / 100)",
        "linear/query 2: ceil(12.5 / 10)",
        "largest 9: nodes 1, cores 1, services 9, query 2",
    ]


@pytest.mark.parametrize(
    ("driver", "count", "replicas"),
    [
        (Driver("services", SERVICES, per_replica=10), 0, 1),
        (Driver("services", SERVICES, ladder=((0, 0), (5, 3))), 0, 0),
        (Driver("services", SERVICES, ladder=((0, 0), (5, 3))), 5, 3),
    ],
    ids=["a ratio gives at least 1", "a rung gives 0", "a rung is reached"],
)
def test_a_driver_alone_needs_no_nodes(driver: Driver, count: int, replicas: int) -> None:
    settings = ProportionalSettings(drivers=(driver,))
    inputs = inputs_of(Unknown("nodes are not watched"), counts={SERVICES: count})
    assert calculated(settings, inputs).replicas == replicas


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (ProportionalSettings(mode=COREDNS), "the nodes cannot be read: may not list nodes"),
        (
            ProportionalSettings(drivers=(Driver("services", SERVICES, 1),)),
            "the number of services cannot be read: nothing has counted them yet",
        ),
        (
            ProportionalSettings(drivers=(QUERY,)),
            "the value of the query 'sum(up)' cannot be read: Prometheus is away",
        ),
        (FROM_CONFIG_MAP, "the ConfigMap kube-system/dns-autoscaler cannot be read: may not get it"),
    ],
    ids=["nodes", "a count", "a query", "a ConfigMap"],
)
def test_a_missing_input_is_named_with_its_reason(settings: ProportionalSettings, reason: str) -> None:
    inputs = inputs_of(
        Unknown("may not list nodes"),
        queries={"sum(up)": Unknown("Prometheus is away")},
        config_map=Unknown("may not get it"),
    )
    with pytest.raises(InputMissingError) as missing:
        calculated(settings, inputs)
    assert str(missing.value) == reason


SPREAD: Final = Linear(0, 10, max=1, prevent_single_point_failure=True)


@pytest.mark.parametrize(
    ("mode", "last", "replicas"),
    [
        (Linear(0, 10, min=3, max=5), 9, 5),
        (Linear(0, 10, min=3, max=5), 2, 3),
        (Linear(0, 10, max=1), 2, 1),
        (SPREAD, 2, 2),
        (SPREAD, 9, 2),
        (COREDNS, 40, 40),
        (Interpolated(nodes_to_replicas=((1, 1), (9, 9)), max=5), 9, 5),
        (Ladder(nodes_to_replicas=((1, 1),)), 9, 9),
    ],
    ids=[
        "max",
        "min",
        "max of 1",
        "two replicas beyond max",
        "no more than these",
        "a larger max",
        "interpolated",
        "ladder",
    ],
)
def test_a_size_that_is_kept_without_nodes_stays_within_its_bounds(mode: Mode, last: int, replicas: int) -> None:
    policy = RecommendationPolicy("dns", "proportional", stale_after_seconds=60.0)
    calculate, before = calculate_proportional(ProportionalSettings(mode=mode)), LastValue(last, NOW - 10, NOW - 10)
    found = decide(policy, calculate, inputs_of(Unknown("may not list nodes")), Memory(before), NOW)
    assert found.record.replicas == replicas


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0])
def test_a_query_value_that_is_not_a_count_is_an_error(value: float) -> None:
    with pytest.raises(CalculationError, match="correct the query"):
        calculated(ProportionalSettings(drivers=(QUERY,)), inputs_of(queries={"sum(up)": Observed(value, NOW)}))


def test_the_mode_of_a_config_map_changes_while_running() -> None:
    inputs = inputs_of(nodes_of(4, 8), config_map=ConfigMapData({"linear": '{"nodesPerReplica": 2}'}, "7"))
    first = calculated(FROM_CONFIG_MAP, inputs)
    changed = inputs_of(nodes_of(4, 8), config_map=ConfigMapData({"ladder": '{"nodesToReplicas": [[1, 5]]}'}, "8"))
    second = calculated(FROM_CONFIG_MAP, changed, Memory(own=first.own))
    assert (first.replicas, second.replicas) == (2, 5)
    assert restore_memory(second.own).parameters == LastParameters("ladder", '{"nodesToReplicas": [[1, 5]]}', "8")


def test_parameters_of_a_config_map_are_forgotten_once_the_file_has_its_own() -> None:
    calculation = calculated(ProportionalSettings(mode=COREDNS), inputs_of(nodes_of(4, 8)), LAST_GOOD)
    assert restore_memory(calculation.own).parameters is None


LAST_GOOD: Final = Memory(own=ProportionalMemory(LastParameters("linear", '{"nodesPerReplica": 2}', "7")))
UNUSABLE: Final = {
    "broken": (ConfigMapData({"linear": "{"}, "8"), "cannot be used: linear: this is not JSON"),
    "two keys": (ConfigMapData({"linear": "{}", "ladder": "{}"}, "8"), "cannot be used: `data` must have exactly one"),
    "unknown mode": (ConfigMapData({"x": "{}"}, "8"), "cannot be used: the mode 'x' is not known"),
    "gone": (None, "does not exist"),
}


@pytest.mark.parametrize(
    ("found", "reason"), [*UNUSABLE.values(), (Unknown("403"), "cannot be read: 403")], ids=[*UNUSABLE, "unreadable"]
)
def test_the_last_good_parameters_stay_in_use(found: ConfigMapData | Unknown | None, reason: str) -> None:
    calculation = calculated(FROM_CONFIG_MAP, inputs_of(nodes_of(4, 8), config_map=found), LAST_GOOD)
    assert calculation.replicas == 2
    assert restore_memory(calculation.own).parameters == restore_memory(LAST_GOOD.own).parameters
    assert calculation.note.startswith(f"the ConfigMap kube-system/dns-autoscaler {reason}")
    assert calculation.note.endswith("; the parameters of resourceVersion 7 stay in use")


@pytest.mark.parametrize(("found", "reason"), UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize(
    "memory",
    [Memory(), Memory(own=ProportionalMemory(LastParameters("gone", "{}", "1")))],
    ids=["nothing", "unreadable memory"],
)
def test_without_good_parameters_there_is_no_value(found: ConfigMapData | None, reason: str, memory: Memory) -> None:
    with pytest.raises(CalculationError) as error:
        calculated(FROM_CONFIG_MAP, inputs_of(nodes_of(4, 8), config_map=found), memory)
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("changed", "replicas", "binding"),
    [(NOW - 29, 9, "quietPeriod"), (NOW - 30, 2, "linear/nodes"), (NOW + 60, 2, "linear/nodes")],
    ids=["quiet", "no longer quiet", "the clock was set back"],
)
def test_the_value_is_held_for_the_quiet_period(changed: float, replicas: int, binding: str) -> None:
    settings = ProportionalSettings(mode=Linear(0, 2), quiet_period_seconds=30)
    memory = Memory(last=LastValue(9, changed, changed), changes=(NOW - 300, changed))
    calculation = calculated(settings, inputs_of(nodes_of(4, 8)), memory)
    assert (calculation.replicas, calculation.binding) == (replicas, binding)


def test_resources_alone_have_no_replicas() -> None:
    sizes = {"coredns": {"requests": {"memory": ResourceStep("64Mi", step="2Mi", nodes_per_step=4)}}}
    calculation = calculated(ProportionalSettings(resources=sizes), inputs_of(nodes_of(3, 12, 5, 20)))
    assert calculation.replicas is None
    assert calculation.details == ContainerSizes({"coredns": {"requests": {"memory": "68Mi"}}})
    assert calculation.inputs["nodes"] == 5


# The published coefficients of CoreDNS: 49.1 MB and 0.858 MB for each thousand pods and Services.
DNS_MEMORY = ResourceStep("49100k", step="858k", pods_and_services_per_step=1000)


@pytest.mark.parametrize(("pods", "services", "size"), [(0, 0, "49100k"), (900, 101, "50816k"), (9000, 1000, "57680k")])
def test_a_size_grows_with_the_pods_and_services_together(pods: int, services: int, size: str) -> None:
    settings = ProportionalSettings(resources={"coredns": {"requests": {"memory": DNS_MEMORY}}})
    counts = {CountQuery("pods"): pods, SERVICES: services}
    calculation = calculated(settings, inputs_of(nodes_of(3, 12), counts=counts))
    assert calculation.details == ContainerSizes({"coredns": {"requests": {"memory": size}}})
    assert (calculation.inputs["all_pods"], calculation.inputs["all_services"]) == (pods, services)


def test_a_size_by_objects_that_are_not_counted_yet_is_missing() -> None:
    settings = ProportionalSettings(resources={"coredns": {"requests": {"memory": DNS_MEMORY}}})
    with pytest.raises(InputMissingError, match="the number of services cannot be read"):
        calculated(settings, inputs_of(nodes_of(3, 12), counts={CountQuery("pods"): 5}))
