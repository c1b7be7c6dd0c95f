"""The scheduling configuration: every key, every default, and each refusal with its place and repair."""

from __future__ import annotations

import contextlib
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.configuration.reading import SchedulingFileError, read_scheduling
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import (
    DailyPeaksArgs,
    FilterSettings,
    GpuFragmentationArgs,
    GpuPackingArgs,
    GpuSettings,
    HotspotSettings,
    LoadVariationRiskBalancingArgs,
    LowRiskOverCommitmentArgs,
    MostAllocatedArgs,
    PeaksArgs,
    PolicyName,
    PolicySettings,
    PowerModel,
    RequestedToCapacityRatioArgs,
    ResourceWeight,
    SchedulingSettings,
    SelectorSpreadArgs,
    ShapePoint,
    TargetLoadPackingArgs,
)
from adapter.nodes.model.usage import UsageName

HEAD = "apiVersion: tidewatch.io/v1alpha1\nkind: SchedulingConfiguration\n"

EVERYTHING = """\
policies:
- name: target-load-packing
  weight: 5
  args: {targetUtilization: 50, defaultRequests: {cpu: "2"}, defaultRequestsMultiplier: "1.8"}
- name: load-variation-risk-balancing
  args: {safeVarianceMargin: 2, safeVarianceSensitivity: 0.5, resources: [cpu, gpu]}
- name: low-risk-overcommitment
  args: {smoothingWindowSize: 1, riskLimitWeights: {cpu: 0.25}}
- name: peaks
  args: {nodePowerModel: {node-1: {k0: 471.74, k1: -91.5, k2: -0.0718}}}
- name: daily-peaks
  args:
    priority: [{name: cpu_usage_max_avg_1d, weight: 0.5}, {name: mem_usage_avg_5m, weight: "0.25"}]
    predicate: [{name: cpu_usage_avg_5m, maxLimitPecent: 0.65}, {name: cpu_usage_max_avg_1h, maxLimitPercent: 0.75}]
- name: predicted-load-packing
  args: {targetUtilization: 60, defaultRequests: {cpu: 2000m}, defaultRequestsMultiplier: 1.8}
- name: selector-spread
- name: most-allocated
  args: {resources: [{name: cpu}, {name: nvidia.com/gpu, weight: 5}]}
- name: requested-to-capacity-ratio
  args:
    scoringStrategy:
      type: RequestedToCapacityRatio
      resources: [{name: nvidia.com/gpu, weight: 5}]
      requestedToCapacityRatio:
        shape: [{utilization: 0, score: 10}, {utilization: 100, score: 0}]
- name: gpu-packing
- name: gpu-fragmentation
filter: {cpu: 80%, memory: 90%, use: limits, pools: {batch: {cpu: 97.5%}}}
nodes: {match: ip}
queries: {cpu: my_cpu}
matchers: {cluster: east, k8s.cluster.name: eu-1}
gpu: {resources: [amd.com/gpu], allocationAnnotation: example.com/gpus}
poolLabel: example.com/pool
schedulerNames: [tidewatch, by-load]
watcher: {estimates: true}
hotspots: {memory: 70%, rounds: 2, clear: 1}
"""


def read(text: str) -> SchedulingSettings:
    return read_scheduling(HEAD + dedent(text), "s.yaml")


def test_a_file_with_only_the_header_gives_the_defaults() -> None:
    assert read("") == SchedulingSettings()


def test_every_key_is_read() -> None:
    assert read(EVERYTHING) == SchedulingSettings(
        policies=(
            PolicySettings(PolicyName.TARGET_LOAD_PACKING, 5, TargetLoadPackingArgs(50.0, 2000, 1.8)),
            PolicySettings(
                PolicyName.LOAD_VARIATION_RISK_BALANCING,
                1,
                LoadVariationRiskBalancingArgs(2.0, 0.5, (LoadResource.CPU, LoadResource.GPU)),
            ),
            PolicySettings(
                PolicyName.LOW_RISK_OVERCOMMITMENT, 1, LowRiskOverCommitmentArgs(1, {"cpu": 0.25, "memory": 0.5})
            ),
            PolicySettings(PolicyName.PEAKS, 1, PeaksArgs({"node-1": PowerModel(471.74, -91.5, -0.0718)})),
            PolicySettings(
                PolicyName.DAILY_PEAKS,
                1,
                DailyPeaksArgs(
                    {UsageName.CPU_1D: 0.5, UsageName.MEMORY_5M: 0.25}, {UsageName.CPU_5M: 0.65, UsageName.CPU_1H: 0.75}
                ),
            ),
            PolicySettings(PolicyName.PREDICTED_LOAD_PACKING, 1, TargetLoadPackingArgs(60.0, 2000, 1.8)),
            PolicySettings(PolicyName.SELECTOR_SPREAD, 1, SelectorSpreadArgs()),
            PolicySettings(
                PolicyName.MOST_ALLOCATED,
                1,
                MostAllocatedArgs((ResourceWeight("cpu", 1), ResourceWeight("nvidia.com/gpu", 5))),
            ),
            PolicySettings(
                PolicyName.REQUESTED_TO_CAPACITY_RATIO,
                1,
                RequestedToCapacityRatioArgs(
                    (ShapePoint(0, 10), ShapePoint(100, 0)), (ResourceWeight("nvidia.com/gpu", 5),)
                ),
            ),
            PolicySettings(PolicyName.GPU_PACKING, 1, GpuPackingArgs()),
            PolicySettings(PolicyName.GPU_FRAGMENTATION, 1, GpuFragmentationArgs()),
        ),
        filter=FilterSettings(
            {LoadResource.CPU: 0.8, LoadResource.MEMORY: 0.9}, "limits", {"batch": {LoadResource.CPU: 0.975}}
        ),
        match="ip",
        queries={LoadResource.CPU: "my_cpu"},
        matchers={"cluster": "east", "k8s.cluster.name": "eu-1"},
        gpu=GpuSettings(("amd.com/gpu",), "example.com/gpus"),
        pool_label="example.com/pool",
        scheduler_names=frozenset({"tidewatch", "by-load"}),
        watcher_estimates=True,
        hotspots=HotspotSettings({LoadResource.CPU: 0.8, LoadResource.MEMORY: 0.7}, 2, 1),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("polices: []", "s.yaml:3: the key 'polices' is not known: did you mean 'policies'?"),
        (
            "policies: []",
            "s.yaml:3: no policy is listed: write a policy, or remove the key for the default",
        ),
        (
            "policies: [{name: TargetLoadPacking}]",
            "s.yaml:3: 'TargetLoadPacking' is not a policy: did you mean target-load-packing?",
        ),
        (
            "policies: [{weight: 1}]",
            "s.yaml:3: `policies.name` is missing: write name: target-load-packing",
        ),
        (
            "policies: [{name: peaks, weight: 0}]",
            "s.yaml:3: `weight` is 0: write a whole number from 1 to 1000",
        ),
        (
            "policies:\n- name: peaks\n- name: peaks",
            "s.yaml:5: the policy peaks is listed twice, first in line 4: remove one of them",
        ),
        (
            "policies: [{name: target-load-packing, args: {targetUtilisation: 50}}]",
            "s.yaml:3: the key 'targetUtilisation' is not known: did you mean 'targetUtilization'?",
        ),
        (
            "policies: [{name: target-load-packing, args: {targetUtilization: 100}}]",
            "s.yaml:3: `targetUtilization` is 100: write a number from 1 to 99",
        ),
        (
            "policies: [{name: target-load-packing, args: {defaultRequests: {cpu: lots}}}]",
            "s.yaml:3: 'lots' is not a quantity: write a quantity, such as 100m or 64Mi",
        ),
        (
            "policies: [{name: target-load-packing, args: {watcherAddress: http://load-watcher:2020}}]",
            (
                "s.yaml:3: the key 'watcherAddress' has no effect here: remove it: "
                "scores are computed from this program's own windows"
            ),
        ),
        (
            "policies: [{name: daily-peaks, args: {priority: [{name: cpu_usage_avg_1d, weight: 1}]}}]",
            "s.yaml:3: 'cpu_usage_avg_1d' is not a use of nodes: did you mean cpu_usage_max_avg_1d?",
        ),
        (
            "policies: [{name: daily-peaks, args: {predicate: [{name: cpu_usage_avg_5m}]}}]",
            (
                "s.yaml:3: a limit has one of the keys `maxLimitPercent` and `maxLimitPecent`, as crane spells it: "
                "write maxLimitPercent: 0.65"
            ),
        ),
        (
            "policies: [{name: daily-peaks, args: {hotValue: []}}]",
            (
                "s.yaml:3: the key 'hotValue' has no effect here: remove it: "
                "the requests of recently bound pods are added to the use of their node"
            ),
        ),
        (
            (
                "policies: [{name: target-load-packing}, "
                "{name: predicted-load-packing, args: {defaultRequestsMultiplier: 2}}]"
            ),
            (
                "s.yaml:3: target-load-packing and predicted-load-packing have different defaults for the CPU of pods: "
                "write the same defaultRequests and defaultRequestsMultiplier in both"
            ),
        ),
        (
            "policies: [{name: selector-spread, args: {zones: true}}]",
            "s.yaml:3: the key 'zones' is not known: remove it: there are no keys here",
        ),
        (
            "policies: [{name: low-risk-overcommitment, args: {riskLimitWeights: {cpu: 2}}}]",
            "s.yaml:3: `cpu` is 2: write a number from 0 to 1",
        ),
        (
            "policies: [{name: peaks, args: {nodePowerModel: {a: {k0: 1, k1: 2}}}}]",
            "s.yaml:3: `nodePowerModel.k2` is missing: write k2: 0",
        ),
        (
            "policies: [{name: most-allocated, args: {scoringStrategy: {type: LeastAllocated}}}]",
            "s.yaml:3: 'LeastAllocated' is not the strategy of this policy: did you mean MostAllocated?",
        ),
        (
            (
                "policies: [{name: requested-to-capacity-ratio, args: {requestedToCapacityRatio: "
                "{shape: [{utilization: 50, score: 1}, {utilization: 50, score: 2}]}}}]"
            ),
            (
                "s.yaml:3: utilization 50 is not above that of the point before: "
                "write the points in the order of their utilization"
            ),
        ),
        (
            "filter: {cpu: 0.8}",
            "s.yaml:3: '0.8' is not a percentage: write a percentage above 0% and up to 1000%, such as 5%",
        ),
        ("filter: {use: request}", "s.yaml:3: 'request' is not requests or limits: did you mean requests?"),
        (
            "filter: {pools: {batch: {cpu: 70%}}}",
            (
                "s.yaml:3: `filter.pools` has no effect without `poolLabel`: "
                "write poolLabel: with the label of nodes that names their pool"
            ),
        ),
        (
            "schedulerNames: []",
            "s.yaml:3: no scheduler is named: write the schedulerName of pods, or remove the key for all pods",
        ),
        ("nodes: {match: names}", "s.yaml:3: 'names' is not a way to match nodes: did you mean nodename?"),
        ("queries: {cpu: ''}", "s.yaml:3: the string is empty: write a value, or remove the key"),
        (
            "matchers: {__name__: up}",
            "s.yaml:3: '__name__' is not a label that can be matched here: write the name of a label, such as cluster",
        ),
        (
            "poolLabel: /pool",
            (
                "s.yaml:3: '/pool' is not a label key: its prefix '' is not a DNS subdomain of at most 253 "
                "characters: write the key alone, such as example.com/pool"
            ),
        ),
        ("watcher: {estimates: 1}", "s.yaml:3: '1' is not true or false: write true or false"),
        (
            "hotspots: {cpu: 101%}",
            "s.yaml:3: `cpu` is 101%: write a percentage above 0% and up to 100%, such as 5%",
        ),
        ("hotspots: {rounds: 0}", "s.yaml:3: `rounds` is 0: write a whole number from 1 to 1000"),
    ],
)
def test_mistakes_are_refused_with_their_line_and_repair(text: str, expected: str) -> None:
    with pytest.raises(SchedulingFileError) as caught:
        read(text)
    assert [str(problem) for problem in caught.value.problems] == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "s.yaml:1: the file is empty: begin it with apiVersion: tidewatch.io/v1alpha1 and kind: Scheduling"),
        ("[]", "s.yaml:1: the file is not a mapping"),
        ("kind: SchedulingConfiguration", "s.yaml:1: `apiVersion` is missing"),
        ("apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration", "s.yaml:2: 'RecommenderConfiguration'"),
        ("a: [", "s.yaml:2: this is not YAML"),
    ],
)
def test_a_file_of_another_kind_is_refused(text: str, expected: str) -> None:
    with pytest.raises(SchedulingFileError) as caught:
        read_scheduling(text, "s.yaml")
    assert str(caught.value).startswith(expected)


def test_all_problems_of_a_file_are_reported_in_its_order() -> None:
    with pytest.raises(SchedulingFileError) as caught:
        read("hotspots: {rounds: x}\nfilter: {cpu: y}\n")
    assert [problem.line for problem in caught.value.problems] == [3, 4]
    assert str(caught.value).split("\n") == [str(problem) for problem in caught.value.problems]


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(SchedulingFileError):
        read(text)
