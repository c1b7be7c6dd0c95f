"""Series as exporters and kube-state-metrics publish them, for a real Prometheus."""

from __future__ import annotations

import time
from typing import Final

PODS: Final = ("web-7d9f8b6c5d-x2k4q", "web-7d9f8b6c5d-b7c8d")
HOURS: Final = 30
NODES: Final = 40


def text_of_now() -> str:
    """Return a scrape: connections, two add-ons, nodes, and what kube-state-metrics knows of pods."""
    lines = [f'websocket_connections{{namespace="shop",pod="{pod}"}} 900' for pod in PODS]
    # Without kube-state-metrics' time of readiness, it is not known how long a pod takes to start.
    lines += ['http_requests_total{namespace="shop",pod="api-5c6d7f8b9c-k4q2x"} 5']
    for name, replicas in (("web", 2), ("api", 1)):
        lines += [f'kube_deployment_spec_replicas{{namespace="shop",deployment="{name}"}} {replicas}']
        lines += [f'kube_deployment_status_replicas_ready{{namespace="shop",deployment="{name}"}} {replicas}']
    lines += ['kube_deployment_spec_replicas{namespace="kube-system",deployment="coredns"} 2']
    for pod, seconds in zip(PODS, (40, 50), strict=True):
        lines += [f'kube_pod_created{{namespace="shop",pod="{pod}"}} 1000']
        lines += [f'kube_pod_status_ready_time{{namespace="shop",pod="{pod}"}} {1000 + seconds}']
    for number in range(NODES):
        node = f'node="n{number}"'
        lines += [
            f'kube_node_status_allocatable{{{node},resource="cpu"}} 4',
            f"kube_node_spec_unschedulable{{{node}}} 0",
        ]
        lines += [f'kube_node_status_condition{{{node},condition="Ready",status="true"}} 1']
    names = dict.fromkeys(line.partition("{")[0] for line in lines)
    return "".join(
        f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}\n"
        + "".join(f"{line}\n" for line in lines if line.startswith(f"{name}{{"))
        for name in names
    )


def history() -> str:
    """Return more than a day of connections: each pod carried 1000, and 1200 in a busy hour of each day."""
    now = int(time.time()) // 60 * 60
    lines = ["# TYPE websocket_connections gauge"]
    for pod in PODS:
        for age in range(HOURS * 60, 5, -4):
            load = 1200 if age % (24 * 60) < 90 else 1000
            lines.append(f'websocket_connections{{namespace="shop",pod="{pod}"}} {load} {now - age * 60}')
    return "\n".join([*lines, "# EOF", ""])
