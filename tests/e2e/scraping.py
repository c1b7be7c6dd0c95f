"""What Prometheus scrapes beside `pod_metrics`, for the time of a block."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from demo.machine.prometheus import PrometheusProcess
    from tests.e2e.controlplane.cluster import Cluster

PORT_NAME: Final = "metrics"
"""Of the containers' ports that are scraped, as the chart's PodMonitor chooses them."""

_META: Final = "__meta_kubernetes"
_KEPT: Final = {
    f"{_META}_namespace": "namespace",
    f"{_META}_pod_name": "pod",
    f"{_META}_pod_container_name": "container",
    f"{_META}_pod_node_name": "node",
}
"""What the Prometheus operator makes labels of, and the node."""


@contextmanager
def reconfigured(
    prometheus: PrometheusProcess, change: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> Iterator[None]:
    """Let Prometheus run with another configuration, and with its own again when the block ends."""
    before: dict[str, Any] = json.loads(prometheus.config_path.read_text())
    prometheus.configure(change(before))
    prometheus.reload()
    try:
        yield
    finally:
        prometheus.configure(before)
        prometheus.reload()


@contextmanager
def scraped_pods(cluster: Cluster, prometheus: PrometheusProcess, namespace: str) -> Iterator[str]:
    """Let Prometheus find and scrape the pods of a namespace that run, as with a PodMonitor; yields the job's name.

    They are found by Prometheus's own service discovery, so pods that come later are scraped too.
    """
    job = f"pods-of-{namespace}"
    config = {
        "job_name": job,
        "kubernetes_sd_configs": [
            {"role": "pod", "kubeconfig_file": str(cluster.kubeconfig), "namespaces": {"names": [namespace]}}
        ],
        "relabel_configs": [
            {"source_labels": [f"{_META}_pod_container_port_name"], "regex": PORT_NAME, "action": "keep"},
            *({"source_labels": [label], "target_label": name} for label, name in _KEPT.items()),
        ],
    }
    with reconfigured(prometheus, lambda before: {**before, "scrape_configs": [*before["scrape_configs"], config]}):
        yield job
