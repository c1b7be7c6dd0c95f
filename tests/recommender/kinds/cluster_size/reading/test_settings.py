"""`clusterSize:` of the configuration file: what is read, and how each mistake is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from adapter.foundation.documents.load import load_documents
from adapter.foundation.documents.tree import DocumentError
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
from recommender.kinds.cluster_size.reading import node_groups
from recommender.kinds.cluster_size.reading.cluster_size_reader import CLUSTER_SIZE

if TYPE_CHECKING:
    from adapter.foundation.documents.tree import DocumentProblem

GIB: Final = 1 << 30
BY_LABEL: Final = "nodeGroups: {byLabel: {key: pool}}"


def read(text: str) -> tuple[ClusterSizeSettings | None, list[DocumentProblem]]:
    root = load_documents(text, "r.yaml").root
    assert root is not None
    try:
        return CLUSTER_SIZE.read(root), []
    except DocumentError as error:
        return None, list(error.problems)


def settings_of(text: str) -> ClusterSizeSettings:
    settings, problems = read(text)
    assert problems == []
    assert settings is not None
    return settings


def problem_of(text: str) -> str:
    """Return the only problem, without its place."""
    settings, problems = read(text)
    assert settings is None
    [problem] = problems
    return f"{problem.message}: {problem.fix}"


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


NO_KEY = (
    "only letters, digits and - _ . are allowed, with a letter or digit at both ends: "
    "write the key, or its beginning, without value and effect"
)


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


def test_what_is_not_written_has_the_defaults_of_the_peer() -> None:
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
def test_sources_in_their_short_forms(text: str, sources: NodeGroupSources) -> None:
    assert settings_of(text).node_groups == sources


def test_a_selector_may_be_written_as_for_kubectl_and_completes_the_labels_of_the_template() -> None:
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


NO_NAMESPACES: Final = (
    "`clusterAPI.namespaces` is missing: anyone who can create Machines in another namespace would control sizes: "
    "write namespaces: [capi-system], those of your node groups"
)
GROUP: Final = "nodeGroups: [{name: a, max: 3, selector: {pool: a}, %s}]"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "expander: random",
            "`clusterSize.nodeGroups` is missing: write nodeGroups: {clusterAPI: {namespaces: [capi-system]}}",
        ),
        ("nodeGroups: {}", "`nodeGroups` is empty: write one of static, clusterAPI, externalGRPC, byLabel, plugin"),
        *((f"nodeGroups: {{clusterAPI: {text}}}", NO_NAMESPACES) for text in ("", "{}", "{namespaces: []}")),
        (
            "nodeGroups: {clusterAPI: {namespace: a, namespaces: [b]}}",
            "`namespace` cannot be combined with `namespaces`: add it to the list",
        ),
        (
            f"{BY_LABEL}\ndaemonSets: {{share: 110%}}",
            "`share` is 110%: write a percentage from 0% to 100%, such as 5%",
        ),
        (
            f"{BY_LABEL}\nautoscalerNamespaces: [Ops]",
            "'Ops' is not the name of a namespace: write lower-case letters, digits and -",
        ),
        (
            "nodeGroups: {externalGRPC: {address: 'cloud:8086'}}",
            (
                "`caFile` is missing: without TLS, anyone on the way could change sizes and delete nodes: write "
                "caFile, and certFile and keyFile for mutual TLS"
            ),
        ),
        (
            "nodeGroups: {externalGRPC: {address: 'cloud:8086', caFile: a, certFile: b}}",
            "`certFile` is given without `keyFile`: write both, or neither",
        ),
        (
            "nodeGroups: {externalGRPC: {address: cloud}}",
            "'cloud' is not an address: write the host and the port of the provider, such as cloud:8086",
        ),
        (
            "nodeGroups: {plugin: {name: a, deleteNodes: true}}",
            "`deleteNodes` has no effect without `writes: true`: write writes: true",
        ),
        ("nodeGroups: []", "there are no node groups: write one, such as {name: a, max: 20, selector: {pool: a}}"),
        ("nodeGroups: {clusterApi: {}}", "the key 'clusterApi' is not known: did you mean 'clusterAPI'?"),
        (f"{BY_LABEL}\nexpandr: random", "the key 'expandr' is not known: did you mean 'expander'?"),
        (
            f"{BY_LABEL}\nexpander: priority,least-waste",
            "'priority,least-waste' names several expanders in one string: write a list: [priority, least-waste]",
        ),
        (
            GROUP % "template: {cpu: 4, memory: 1Gi, gpu: 1}",
            "the key 'gpu' is not a resource: write an extended resource such as nvidia.com/gpu, or remove it",
        ),
        (f"{BY_LABEL}\nexpander: leastwaste", "'leastwaste' is not an expander: did you mean least-waste?"),
        (
            f"{BY_LABEL}\nexpander: priorit\npriorities: {{1: [a]}}",
            "'priorit' is not an expander: did you mean priority?",
        ),
        (f"{BY_LABEL}\nexpander: []", "`expander` is empty: write least-waste, or remove the key"),
        (f"{BY_LABEL}\nexpander: [price, price]", "the expander price is given twice: give it once"),
        (
            f"{BY_LABEL}\nexpander: [random, price]",
            "the expander price has no effect after random, which leaves one option: put random last",
        ),
        (
            f"{BY_LABEL}\npriorities: {{10: [a]}}",
            "`priorities` has no effect without the expander priority: add priority to `expander`, or remove it",
        ),
        (
            f"{BY_LABEL}\nexpander: priority\npriorities: {{high: [a]}}",
            (
                "'high' is not a priority: write whole numbers as keys, such as 10: [spot-.*], or "
                "configMap: {namespace, name}"
            ),
        ),
        (f"{BY_LABEL}\nheadroom: 10", "'10' is not a percentage: write a percentage from 0% to 1000%, such as 5%"),
        (f"{BY_LABEL}\nrounds: 0", "`rounds` is 0: write a whole number from 1 to 10000"),
        (
            f"{BY_LABEL}\nlimits: {{cores: {{min: 9, max: 8}}}}",
            "`limits.cores` has a `max` that is less than its `min`: raise it",
        ),
        (f"{BY_LABEL}\nlimits: {{cores: 1500m}}", "1500m is not a whole number of cores: write whole cores"),
        (
            f"{BY_LABEL}\nlimits: {{gpus: {{gpu: 3}}}}",
            "'gpu' is not an extended resource: write the name of an extended resource, such as nvidia.com/gpu: 16",
        ),
        (
            f"{BY_LABEL}\nscaleDown: {{unneededTim: 1m}}",
            "the key 'unneededTim' is not known: did you mean 'unneededTime'?",
        ),
        (
            f"{BY_LABEL}\nschedules: [{{cron: '61 * * * *', timezone: UTC, duration: 1h, headroom: 5%}}]",
            "61 is not the minute of a cron expression: write 0 to 59",
        ),
        (
            f"{BY_LABEL}\nforecasts: [a, a]",
            "the recommendation 'a' is listed twice, first in line 2: remove one of them",
        ),
        (
            f"{BY_LABEL}\nbalancingLabels: [a b]",
            (
                "'a b' is not a label key: only letters, digits and - _ . are allowed, with a letter or digit "
                "at both ends: write the key alone, such as example.com/pool"
            ),
        ),
        ("nodeGroups: {byLabel: {}}", "`byLabel.key` is missing: write key: cloud.google.com/gke-nodepool"),
        ("nodeGroups: {plugin: {}}", "`plugin.name` is missing: write name: NAME"),
        ("nodeGroups: [{name: a, max: 3}]", "`nodeGroups.selector` is missing: write selector: {pool: a}"),
        (
            "nodeGroups: [{name: a, max: 3, selector: {}}]",
            "`selector` is empty, so it selects all nodes: write the labels of the nodes",
        ),
        (
            "nodeGroups: [{name: a, max: 3, selector: {pool: a}}, {name: a, max: 3, selector: {pool: b}}]",
            "the node group 'a' is listed twice, first in line 1: remove one of them",
        ),
        (
            "nodeGroups: [{name: a, min: 4, max: 3, selector: {pool: a}}]",
            "`max` is 3, less than `min`, which is 4: raise it",
        ),
        (GROUP % "price: -1", "`price` is -1: write a number from 0 to 1000000000"),
        (GROUP % "template: {cpu: 4}", "`template.memory` is missing: write memory: 16Gi"),
        (GROUP % "template: {cpu: 0, memory: 1Gi}", "`cpu` is 0: write what a node of this group has"),
        (
            GROUP % "template: {cpu: 4, memory: 16Gb}",
            "'16Gb' is not a quantity: write a quantity, such as 100m or 64Mi",
        ),
        (GROUP % "template: {cpus: 4, cpu: 4, memory: 1Gi}", "the key 'cpus' is not a resource: did you mean 'cpu'?"),
        (
            GROUP % "template: {cpu: 4, memory: 1Gi, labels: {pool: b}}",
            "`selector` does not select a node with the labels of `template`: write labels that the selector asks for",
        ),
        (
            GROUP % "template: {cpu: 4, memory: 1Gi, taints: [a=b:NoSchedul]}",
            "'NoSchedul' is not the effect of a taint: did you mean NoSchedule?",
        ),
        (
            "nodeGroups: {byLabel: {key: pool}}\nstartupTaints: ['']",
            f"'' is not the beginning of a taint key: {NO_KEY}",
        ),
        (
            "nodeGroups: {byLabel: {key: pool}}\nstatusTaints: ['a=b:NoSchedule']",
            f"'a=b:NoSchedule' is not the beginning of a taint key: {NO_KEY}",
        ),
        (
            "nodeGroups: {byLabel: {key: pool}}\nschedulerNames: ['']",
            "the name of a scheduler is empty: write the schedulerName of pods",
        ),
        (GROUP % "options: {zeroOrMx: true}", "the key 'zeroOrMx' is not known: did you mean 'zeroOrMax'?"),
    ],
)
def test_a_mistake_is_named_with_what_to_write(text: str, problem: str) -> None:
    assert problem_of(text) == problem


def test_without_the_packages_of_grpc_a_provider_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_groups, "find_spec", lambda name: None if name == "grpc" else name)
    problem = problem_of("nodeGroups: {externalGRPC: {address: 'localhost:8086'}}")
    assert problem == (
        "`externalGRPC` needs Python packages that are not installed (grpc): install tidewatch[grpc], or use the image "
        "of Tidewatch, which has them"
    )


def test_a_provider_is_told_what_holds_for_all_groups() -> None:
    text = "nodeGroups: {externalGRPC: {address: 'localhost:8086', timeout: 2s, prices: {a: 0.5}}}"
    external = settings_of(
        f"{text}\nmaxNodeProvisionTime: 5m\nscaleDown: {{unneededTime: 3m}}"
    ).node_groups.external_grpc
    assert external is not None
    assert (external.timeout_seconds, external.prices, external.delete_nodes) == (2.0, {"a": 0.5}, False)
    assert external.defaults == GroupOptions(0.5, 0.5, 180.0, 1200.0, 300.0, ignore_daemon_sets_utilization=False)


def test_all_mistakes_are_reported_in_the_order_of_the_file() -> None:
    _, problems = read("expander: none\nnodeGroups:\n- {name: a, max: x, selector: {pool: a}}\nheadroom: much\n")

    assert [problem.line for problem in problems] == [1, 3, 4]


@given(
    st.dictionaries(
        st.sampled_from([each.key for each in CLUSTER_SIZE.keys]),
        st.sampled_from(["", "1", "-1", "x", "[]", "{}", "[1]", "{a: b}", "~"]),
    )
)
@examples(max_examples=100, deadline=None)
def test_no_value_makes_the_reader_fail(values: dict[str, str]) -> None:
    text = "\n".join(f"{key}: {value}" for key, value in values.items()) or "{}"

    settings, problems = read(text)

    assert (settings is None) == bool(problems)
