"""The settings that are made from `clusterSize:` of the configuration file."""

from __future__ import annotations

from typing import Final

import pytest

from adapter.foundation.objects.selectors import parse_selector
from recommender.kinds.cluster_size.model.groups import GroupOptions
from recommender.kinds.cluster_size.model.size_settings import (
    ClusterApiGroups,
    ClusterSizeSettings,
    HeadroomSchedule,
    LabelGroups,
    NodeGroupSources,
    PluginGroups,
    ScaleDownSettings,
    SizeLimits,
    StaticGroup,
    TrustedDaemonSets,
    Unready,
    WorkloadForecast,
)
from recommender.kinds.cluster_size.model.taints import PassingTaints
from tests.recommender.kinds.cluster_size.reading.cluster_size_text import BY_LABEL, read

GIB: Final = 1 << 30


def settings_of(text: str) -> ClusterSizeSettings:
    settings, problems = read(text)
    assert problems == []
    assert settings is not None
    return settings


EVERYTHING_WRITTEN: Final = """
nodeGroups:
  static:
  - name: a
    min: 1
    max: 20
    price: 0.19
    template:
      {cpu: 3500m, memory: 16Gi, pods: 58, nvidia.com/gpu: 2, labels: {zone: z1}, taints: ["gpu=yes:NoSchedule"]}
    selector: {pool: a}
    options: {utilizationThreshold: 40%, unneededTime: 5m, zeroOrMax: true, ignoreDaemonSetsUtilization: false}
  clusterAPI: {namespaces: [capi-system, more], clusterName: prod, prices: {workers: 0.5}, markMachines: true}
  byLabel: {key: eks.amazonaws.com/nodegroup, min: 1, max: 9, prices: {spot: 0.07}}
  plugin: {name: acme, options: {zones: [a, b], nested: {x: 1}}}
expander: [priority, least-waste]
priorities: {10: [".*"], 50: [spot-.*, burst]}
randomSeed: 7
balanceSimilarNodeGroups: true
balancingIgnoreLabels: [example.com/rack]
balancingLabels: [zone]
limits: {nodes: 100, cores: {min: 8, max: 320}, memory: 2Ti, gpus: {nvidia.com/gpu: 16}}
rounds: 1
maxNodesPerScaleUp: 3000
newPodScaleUpDelay: 10s
expendablePodsPriorityCutoff: -5
maxNodeProvisionTime: 20m
startupTaints: [example.com/warming-, cni.example.com/]
statusTaints: [example.com/degraded]
schedulerNames: [default-scheduler, volcano]
maxUnready: {ratio: 30%, count: 5}
enforceMinSize: false
scaleDown:
  enabled: true
  utilizationThreshold: 60%
  gpuUtilizationThreshold: 10%
  unneededTime: 1m
  unreadyTime: 2m
  unreadyEnabled: false
  delayAfterAdd: 3m
  delayAfterDelete: 4s
  delayAfterFailure: 5m
  maxParallelism: 3
  maxDrainParallelism: 2
  skipNodesWithSystemPods: false
  skipNodesWithLocalStorage: false
  skipNodesWithCustomControllerPods: false
  minReplicaCount: 2
  ignoreDaemonSetsUtilization: true
  ignoreMirrorPodsUtilization: true
  systemPodTime: 30m
headroom: 10%
schedules: [{cron: "0 8 * * mon-fri", timezone: Europe/Berlin, duration: 2h, headroom: 25%}]
forecasts: [chat]
daemonSets: {namespaces: [monitoring], share: 10%}
autoscalerNamespaces: [ops]
"""


def test_every_key_is_read() -> None:
    settings = settings_of(EVERYTHING_WRITTEN)

    assert settings == ClusterSizeSettings(
        node_groups=NodeGroupSources(
            static=(
                StaticGroup(
                    "a",
                    1,
                    20,
                    parse_selector("pool=a"),
                    price=0.19,
                    capacity={"cpu": 3500, "memory": 16 * GIB, "pods": 58, "nvidia.com/gpu": 2},
                    labels={"pool": "a", "zone": "z1"},
                    taints=(("gpu", "yes", "NoSchedule"),),
                    options=GroupOptions(
                        utilization_threshold_ratio=0.4,
                        unneeded_seconds=300.0,
                        zero_or_max=True,
                        ignore_daemon_sets_utilization=False,
                    ),
                ),
            ),
            cluster_api=ClusterApiGroups(("capi-system", "more"), "prod", {"workers": 0.5}, mark_machines=True),
            by_label=LabelGroups("eks.amazonaws.com/nodegroup", 1, 9, {"spot": 0.07}),
            plugin=PluginGroups("acme", {"zones": ["a", "b"], "nested": {"x": "1"}}),
            daemon_sets=TrustedDaemonSets(frozenset({"kube-system", "monitoring"}), 0.1),
            autoscaler_namespaces=("kube-system", "ops"),
        ),
        expanders=("priority", "least-waste"),
        priorities={10: (".*",), 50: ("spot-.*", "burst")},
        random_seed=7,
        balance_similar_node_groups=True,
        balancing_ignore_labels=("example.com/rack",),
        balancing_labels=("zone",),
        limits=SizeLimits(
            max_nodes=100, min_cores=8, max_cores=320, max_memory_bytes=2048 * GIB, gpus={"nvidia.com/gpu": 16}
        ),
        rounds=1,
        max_nodes_per_scale_up=3000,
        new_pod_scale_up_delay_seconds=10.0,
        expendable_pods_priority_cutoff=-5,
        max_node_provision_seconds=1200.0,
        passing_taints=PassingTaints(("example.com/warming-", "cni.example.com/"), ("example.com/degraded",)),
        scheduler_names=frozenset({"default-scheduler", "volcano"}),
        unready=Unready(0.3, 5),
        enforce_min_size=False,
        scale_down=ScaleDownSettings(
            enabled=True,
            utilization_threshold_ratio=0.6,
            gpu_utilization_threshold_ratio=0.1,
            unneeded_seconds=60.0,
            unready_seconds=120.0,
            unready_enabled=False,
            delay_after_add_seconds=180.0,
            delay_after_delete_seconds=4.0,
            delay_after_failure_seconds=300.0,
            max_parallelism=3,
            max_drain_parallelism=2,
            skip_nodes_with_system_pods=False,
            skip_nodes_with_local_storage=False,
            skip_nodes_with_custom_controller_pods=False,
            min_replica_count=2,
            ignore_daemon_sets_utilization=True,
            ignore_mirror_pods_utilization=True,
            system_pod_seconds=1800.0,
        ),
        headroom_ratio=0.1,
        schedules=(HeadroomSchedule("0 8 * * mon-fri", "Europe/Berlin", 7200.0, 0.25),),
        forecasts=(WorkloadForecast("chat"),),
    )


def test_omitted_keys_have_the_defaults_of_the_peer() -> None:
    assert settings_of(BY_LABEL) == ClusterSizeSettings(NodeGroupSources(by_label=LabelGroups("pool")))


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        (
            "nodeGroups: [{name: a, max: 3, selector: {pool: a}}]",
            NodeGroupSources(
                static=(StaticGroup("a", 0, 3, parse_selector("pool=a"), labels={"pool": "a"}),),
            ),
        ),
        ("nodeGroups: {clusterAPI: {namespace: capi}}", NodeGroupSources(cluster_api=ClusterApiGroups(("capi",)))),
        ("nodeGroups: {plugin: {name: acme}}", NodeGroupSources(plugin=PluginGroups("acme"))),
    ],
)
def test_sources_can_be_written_in_short_forms(text: str, sources: NodeGroupSources) -> None:
    assert settings_of(text).node_groups == sources


def test_a_kubectl_selector_is_accepted_and_completes_the_labels_of_the_template() -> None:
    template = "{cpu: 4, memory: 8Gi, labels: {tier: x}}"
    text = f"nodeGroups: [{{name: a, max: 3, selector: 'pool in (a), tier in (x, y)', template: {template}}}]"

    [group] = settings_of(text).node_groups.static

    assert group.labels == {"pool": "a", "tier": "x"}
    assert group.capacity == {"cpu": 4000, "memory": 8 * GIB, "pods": 110}


@pytest.mark.parametrize(
    ("text", "config_map"),
    [
        ("expander: priority", ("kube-system", "cluster-autoscaler-priority-expander")),
        ("expander: priority\npriorities: {configMap: {namespace: infra, name: mine}}", ("infra", "mine")),
        ("expander: random", None),
    ],
)
def test_priorities_come_from_the_peers_config_map_unless_written(text: str, config_map: object) -> None:
    settings = settings_of(f"{BY_LABEL}\n{text}")

    assert (settings.priorities, settings.priorities_config_map) == (None, config_map)


def test_a_provider_gets_the_defaults_of_all_groups() -> None:
    text = "nodeGroups: {externalGRPC: {address: 'localhost:8086', timeout: 2s, prices: {a: 0.5}}}"
    external = settings_of(
        f"{text}\nmaxNodeProvisionTime: 5m\nscaleDown: {{unneededTime: 3m}}"
    ).node_groups.external_grpc
    assert external is not None
    assert (external.timeout_seconds, external.prices, external.delete_nodes) == (2.0, {"a": 0.5}, False)
    assert external.defaults == GroupOptions(0.5, 0.5, 180.0, 1200.0, 300.0, ignore_daemon_sets_utilization=False)
