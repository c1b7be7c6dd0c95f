"""Scrape targets of Prometheus beside `pod_metrics`, for the time of a block."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import urllib3.exceptions

from demo.machine.files import replace_file
from demo.machine.prometheus import target_files
from tests.e2e.controlplane.client import ApiError
from tests.support.prometheus import reload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

PORT_NAME: Final = "metrics"
"""The name of the container ports that are scraped, which the chart's PodMonitor selects."""

_INTERVAL_SECONDS: Final = 0.5


@contextmanager
def reconfigured(
    prometheus: PrometheusProcess, change: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> Iterator[None]:
    """Give Prometheus another configuration for the block, and its own again afterwards."""
    before: dict[str, Any] = json.loads(prometheus.config_path.read_text())
    try:
        prometheus.configure(change(before))
        reload(prometheus)
        yield
    finally:
        prometheus.configure(before)
        reload(prometheus)


def with_job(before: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with one more scrape job."""
    return {**before, "scrape_configs": [*before["scrape_configs"], job]}


@contextmanager
def scraped_pods(cluster: Cluster, prometheus: PrometheusProcess, namespace: str) -> Iterator[str]:
    """Let Prometheus scrape the running pods of a namespace, as with a PodMonitor; yield the job's name.

    Pods that start later are scraped too. Prometheus reads the pods from a file: Debian's build has no discovery of
    Kubernetes's objects.
    """
    job = f"pods-of-{namespace}"
    path = prometheus.folder / f"{job}.json"
    config = {"job_name": job, "file_sd_configs": [target_files(path)]}
    ended = threading.Event()
    follower = threading.Thread(target=_follow, args=(cluster, namespace, path, ended), name=job, daemon=True)
    replace_file(path, "[]")
    follower.start()
    try:
        with reconfigured(prometheus, lambda before: with_job(before, config)):
            yield job
    finally:
        ended.set()
        follower.join()


def targets_of(pods: Sequence[Document]) -> list[dict[str, Any]]:
    """Return the scrape targets, with the labels that the Prometheus operator sets, and the node's label."""
    return [
        {
            "targets": [f"{pod['status']['podIP']}:{port['containerPort']}"],
            "labels": {
                "namespace": pod["metadata"]["namespace"],
                "pod": pod["metadata"]["name"],
                "container": container["name"],
                "node": pod["spec"]["nodeName"],
            },
        }
        for pod in pods
        if pod["status"].get("podIP")
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or []
        if port.get("name") == PORT_NAME
    ]


def _follow(cluster: Cluster, namespace: str, path: Path, ended: threading.Event) -> None:
    written = ""
    while not ended.is_set():
        try:
            text = json.dumps(targets_of(cluster.pods(namespace)))
        except (urllib3.exceptions.HTTPError, ApiError):
            # The API server is away: what was scraped still is.
            text = written
        if text != written:
            replace_file(path, text)
            written = text
        ended.wait(_INTERVAL_SECONDS)
