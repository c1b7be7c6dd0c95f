"""The pages on cluster sizes list what the program knows, and their examples work."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from recommender.commands.main import main
from recommender.configuration.reading import read_configuration
from recommender.kinds.cluster_size.expanders.chain import expander_problems
from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer
from recommender.kinds.cluster_size.reading import cluster_size_reader as settings
from recommender.kinds.cluster_size.reading import node_groups, options
from recommender.kinds.cluster_size.scale_down.reasons import BlockingPodReason, KeepReason, WaitReason
from recommender.kinds.cluster_size.shown.document import size_keys
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapter.foundation.documents.sections import Section

DOCS = CHECKOUT / "docs"
PAGE = (DOCS / "cluster-size.md").read_text()
RULES = (DOCS / "cluster-size-rules.md").read_text()
MIGRATION = (DOCS / "migration-from-cluster-autoscaler.md").read_text()
EXAMPLE = DOCS / "examples" / "cluster-size"
PEERS_FLAGS = """
scan-interval max-nodes-total cores-total memory-total gpu-total expander estimator balance-similar-node-groups
balancing-ignore-label balancing-label max-nodes-per-scaleup max-nodegroup-binpacking-duration max-binpacking-time
fastpath-binpacking-enabled new-pod-scale-up-delay scale-up-from-zero expendable-pods-priority-cutoff
max-node-provision-time max-node-startup-time ok-total-unready-count max-total-unready-percentage
initial-node-group-backoff-duration max-node-group-backoff-duration node-group-backoff-reset-timeout
enforce-node-group-min-size scale-down-enabled scale-down-delay-after-add scale-down-delay-after-delete
scale-down-delay-after-failure scale-down-delay-type-local scale-down-unneeded-time scale-down-unready-time
scale-down-utilization-threshold scale-down-gpu-utilization-threshold scale-down-non-empty-candidates-count
scale-down-candidates-pool-ratio scale-down-candidates-pool-min-count scale-down-simulation-timeout
unremovable-node-recheck-timeout max-scale-down-parallelism max-drain-parallelism max-graceful-termination-sec
max-pod-eviction-time node-delete-delay-after-taint node-deletion-delay-timeout skip-nodes-with-system-pods
skip-nodes-with-local-storage skip-nodes-with-custom-controller-pods min-replica-count
daemonset-eviction-for-occupied-nodes daemonset-eviction-for-empty-nodes cordon-node-before-terminating
max-bulk-soft-taint-count max-bulk-soft-taint-time frequent-loops-enabled parallel-scale-up pod-injection-limit
write-status-configmap leader-elect max-inactivity max-failing-time address cloud-provider
blocking-system-pod-distruption-timeout ignore-daemonsets-utilization ignore-mirror-pods-utilization
memory-difference-ratio max-allocatable-difference-ratio max-free-difference-ratio drain-priority-config
node-deletion-candidate-ttl salvo-scale-up scale-from-unschedulable force-ds capacity-quotas-enabled
enable-dynamic-resource-allocation enable-csi-node-aware-scheduling enable-provisioning-requests
enable-graceful-degradation kubeconfig namespace status-config-map-name cluster-name max-startup-time
startup-taint startup-taint-prefix status-taint ignore-taint allowed-scheduler-names bypassed-scheduler-names
async-node-groups enable-proactive-scaleup node-deletion-batcher-interval scheduler-config-file
"""
"""Flags of Cluster Autoscaler, from its FAQ and `pkg/config/flags/flags.go`."""


def first_cells(heading: str, page: str = PAGE) -> str:
    """Return the first cells of the tables below a heading, up to the next heading of the same level."""
    level = heading.partition(" ")[0]
    section = page.partition(f"\n{heading}\n")[2].partition(f"\n{level} ")[0]
    assert section, heading
    return " ".join(re.findall(r"^\| ([^|]*) \|", section, re.MULTILINE))


def unnamed(names: Iterable[str], text: str) -> list[str]:
    return [name for name in names if not re.search(rf"[`.]{re.escape(name)}[`.\[]", text)]


def test_every_key_has_a_row() -> None:
    names = [each.key for each in (*settings.CLUSTER_SIZE.keys, *options.SCALE_DOWN.keys)]
    assert unnamed(names, first_cells("## Configuration")) == []


@pytest.mark.parametrize(
    "keys_of",
    [node_groups._STATIC, node_groups._CLUSTER_API, node_groups._BY_LABEL, node_groups._PLUGIN, options.OPTIONS],
)
def test_the_section_on_node_groups_has_every_key(keys_of: Section[object]) -> None:
    section = RULES.partition("\n## Node groups\n")[2].partition("\n## ")[0]
    assert [each.key for each in keys_of.keys if not re.search(rf"\b{each.key}\b", section)] == []


def test_every_key_of_the_json_has_a_row() -> None:
    assert unnamed(size_keys(ClusterSizeAnswer()), first_cells("## Reading the answer")) == []


def test_every_reason_to_keep_a_node_or_to_wait_is_explained() -> None:
    section = RULES.partition("\n## Which nodes can be removed\n")[2].partition("\n## ")[0]
    assert unnamed((*KeepReason, *WaitReason, *BlockingPodReason), section) == []


def test_every_expander_has_a_row() -> None:
    named = re.findall(r"`([a-z-]+)`", first_cells("### Expanders", RULES))
    assert named
    assert [name for name in named if expander_problems([name])] == []


def test_every_flag_of_cluster_autoscaler_has_its_key_or_a_reason() -> None:
    assert unnamed(PEERS_FLAGS.split(), first_cells("## Flags and keys", MIGRATION)) == []


def test_the_configuration_of_the_example_is_the_one_that_is_shown() -> None:
    shown = PAGE.partition("```yaml\n")[2].partition("```")[0]
    assert shown == (EXAMPLE / "recommender.yaml").read_text()


def test_the_example_prints_what_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    with pytest.raises(SystemExit) as ended:
        main(["recommend", "--config", "recommender.yaml", "--cluster", "cluster.json"])
    assert ended.value.code == 0
    shown = re.search(r"```\n(RECOMMENDATION .*?)```", PAGE, re.DOTALL)
    assert shown is not None
    assert capsys.readouterr().out == shown[1]


def test_the_other_configurations_are_valid() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", f"{PAGE}\n{RULES}", re.DOTALL)[1:]
    entries = [block for block in blocks if block.startswith("- name:")]
    entries += [
        f"- name: groups-{number}\n  clusterSize:\n{re.sub('^', '    ', block, flags=re.MULTILINE)}"
        for number, block in enumerate(blocks)
        if block.startswith("nodeGroups:")
    ]
    assert len(entries) == len(blocks) == 7
    header = "apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\nprometheus: {url: http://p:9090}\n"
    text = f"{header}recommendations:\n" + "\n".join(entries)
    assert [str(problem) for each in read_configuration(text, "f").refused for problem in each.problems] == []
