"""Scrape targets of Prometheus beside `pod_metrics`, for the time of a block."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import urllib3.exceptions

from demo.machine.files import replace_file
from tests.e2e.controlplane.client import ApiError
from tests.support.prometheus import reload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster

PORT_NAME: Final = "metrics"
"""Of the containers' ports that are scraped, as the chart's PodMonitor chooses them."""

_INTERVAL_SECONDS: Final = 0.5


@contextmanager
def reconfigured(
    prometheus: PrometheusProcess, change: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> Iterator[None]:
    """Let Prometheus run with another configuration, and with its own again when the block ends."""
    before: dict[str, Any] = json.loads(prometheus.config_path.read_text())
    try:
        prometheus.configure(change(before))
        reload(prometheus)
        yield
    finally:
        prometheus.configure(before)
        reload(prometheus)


def with_job(before: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration that scrapes one job more."""
    return {**before, "scrape_configs": [*before["scrape_configs"], job]}


@contextmanager
def scraped_pods(cluster: Cluster, prometheus: PrometheusProcess, namespace: str) -> Iterator[str]:
    """Let Prometheus scrape the pods of a namespace that run, as with a PodMonitor; yields the job's name.

    Pods that come later are scraped too. They are handed over in a file: Debian's Prometheus has no discovery of
    Kubernetes's objects.
    """
    job = f"pods-of-{namespace}"
    path = prometheus.folder / f"{job}.json"
    config = {"job_name": job, "file_sd_configs": [{"files": [str(path)]}]}
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
    """Return what Prometheus is to scrape, with the labels that the Prometheus operator gives, and the node's."""
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
