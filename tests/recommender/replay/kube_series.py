"""A recording as the series that kube-state-metrics would have exported for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.pod_requests import CPU

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.recording.recording import Recording


def kube_series(recording: Recording, step: int, *, without: frozenset[str] = frozenset()) -> str:
    """Return OpenMetrics text with a sample at each step; metrics in `without` are left out."""
    by_metric: dict[str, list[str]] = {}
    for metric, line in _samples(recording, step):
        if metric not in without:
            by_metric.setdefault(metric, []).append(f"{metric}{line}")
    parts = [f"# TYPE {metric} gauge\n" + "\n".join(lines) for metric, lines in by_metric.items()]
    return "\n".join([*parts, "# EOF\n"])


def _samples(recording: Recording, step: int) -> Iterator[tuple[str, str]]:
    def steps(begin: float, end: float | None) -> list[int]:
        first = int(-(-max(begin, recording.start) // step) * step)
        last = recording.end if end is None else min(end, recording.end)
        times = range(first, int(last) + 1, step)
        return [at for at in times if not any(gap.start <= at < gap.end for gap in recording.gaps)]

    for node in recording.nodes:
        name = f'node="{node.node.name}"'
        labels = "".join(f',label_{key}="{value}"' for key, value in node.node.labels.items() if "/" not in key)
        for at in steps(node.came, node.gone):
            yield "kube_node_info", f"{{{name}}} 1 {at}"
            yield "kube_node_labels", f"{{{name}{labels}}} 1 {at}"
            yield "kube_node_created", f"{{{name}}} {node.came} {at}"
            for resource, amount in node.node.allocatable.items():
                value = amount.nanos / 10**9
                yield "kube_node_status_allocatable", f'{{{name},resource="{resource}"}} {value} {at}'
    for number, pod in enumerate(recording.pods):
        kind = recording.pod_kinds[pod.kind]
        owner = kind.controller
        assert owner is not None, "made pods have owners"
        who = f'namespace="{kind.namespace}",pod="p{number}",uid="u{number}"'
        about = f'{who},created_by_kind="{owner.kind}",created_by_name="{owner.name}"'
        for at in steps(pod.created, pod.gone):
            node_name = pod.node if pod.bound is not None and pod.bound <= at else ""
            phase = "Running" if node_name else "Pending"
            yield "kube_pod_info", f'{{{about},node="{node_name}"}} 1 {at}'
            yield "kube_pod_status_phase", f'{{{who},phase="{phase}"}} 1 {at}'
            yield "kube_pod_created", f"{{{who}}} {pod.created} {at}"
            for resource, units in kind.resources.requests.items():
                value = units / 1000 if resource == CPU else units
                labels = f'{{{who},container="c",node="{node_name}",resource="{resource}"}}'
                yield "kube_pod_container_resource_requests", f"{labels} {value} {at}"
