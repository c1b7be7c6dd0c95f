"""PromQL for the usage from cAdvisor and the objects from kube-state-metrics, in which nothing is counted twice."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from adapter.foundation.objects.regex import quote_pattern
from adapter.foundation.promql.quoting import go_quoted

CPU_METRIC: Final = "container_cpu_usage_seconds_total"
MEMORY_METRIC: Final = "container_memory_working_set_bytes"
REQUESTS_METRIC: Final = "kube_pod_container_resource_requests"
LIMITS_METRIC: Final = "kube_pod_container_resource_limits"
POD_OWNER_METRIC: Final = "kube_pod_owner"
REPLICA_SET_OWNER_METRIC: Final = "kube_replicaset_owner"
JOB_OWNER_METRIC: Final = "kube_job_owner"
HPA_METRIC: Final = "kube_horizontalpodautoscaler_info"

_BY_CONTAINER: Final = "max by (namespace, pod, container)"
# The pause container and the sums of pods are not containers. With `exported_…`, the labels are those of a pod that
# describes others, such as an exporter.
_CONTAINERS: Final = 'container!="",container!="POD",pod!="",exported_namespace="",exported_pod=""'
# Older kubelets have a series for each core as well.
_ALL_CORES: Final = 'cpu=~"|total"'
# A series with `exported_namespace` has the `namespace` and `pod` of kube-state-metrics itself.
_HONOURED: Final = 'exported_namespace=""'
_KNOWN_BEFORE_SECONDS: Final = 3600
_SHORTEST_RATE_SECONDS: Final = 300.0
_STEP_SECONDS: Final = 300.0
PEAK_STEP_SECONDS: Final = 60
"""How often a query of memory is evaluated for its largest values."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """How CPU is queried: a sample every `step_seconds`, each of which is a rate over the `rate_seconds` before it."""

    step_seconds: int
    rate_seconds: int


def resolution_of(scrape_seconds: float) -> Resolution:
    """Return the resolution that samples every `scrape_seconds` allow: a rate needs two samples."""
    if scrape_seconds * 2 < _SHORTEST_RATE_SECONDS:
        return Resolution(round(_STEP_SECONDS), round(_SHORTEST_RATE_SECONDS))
    step = math.ceil(scrape_seconds / _STEP_SECONDS) * _STEP_SECONDS
    return Resolution(round(step), round(math.ceil(2 * scrape_seconds / 60) * 60 + 60))


USUAL_RESOLUTION: Final = resolution_of(30.0)
"""The resolution for a time without samples, which do not show how often the kubelets are scraped."""


def namespace_matcher(namespaces: Collection[str]) -> str:
    """Return a matcher of these namespaces, with a leading comma; empty if there are none, which means all."""
    if not namespaces:
        return ""
    if len(namespaces) == 1:
        return f",namespace={go_quoted(next(iter(namespaces)))}"
    return f",namespace=~{go_quoted('|'.join(map(quote_pattern, sorted(namespaces))))}"


def cpu_usage(where: str, rate_seconds: int) -> str:
    """Return the query for cores in use. A container counts once, even with several kubelet jobs or after a restart."""
    return f"{_BY_CONTAINER} (rate({CPU_METRIC}{{{_CONTAINERS},{_ALL_CORES}{where}}}[{rate_seconds}s]))"


def memory_usage(where: str) -> str:
    """Return the query for the working sets now."""
    return f"{_BY_CONTAINER} ({MEMORY_METRIC}{{{_CONTAINERS}{where}}})"


def memory_peaks(where: str, seconds: int) -> str:
    """Return the query for the largest working sets in a period."""
    return f"{_BY_CONTAINER} (max_over_time({MEMORY_METRIC}{{{_CONTAINERS}{where}}}[{seconds}s]))"


def peaks_of(query: str, seconds: int) -> str:
    """Return the query for the largest values of a query in a period."""
    return f"max_over_time(({query})[{seconds}s:{PEAK_STEP_SECONDS}s])"


def below(query: str, most: float) -> str:
    """Return the query for those values of a query that are below `most`."""
    return f"({query}) < {most:g}"


def scrapes_in_an_hour(where: str) -> str:
    """Return the query for the number of samples that most series have in an hour; new series have fewer."""
    return f"quantile(0.9, count_over_time({MEMORY_METRIC}{{{_CONTAINERS}{where}}}[1h]))"


def clusters(metric: str, labels: Collection[str], where: str) -> str:
    """Return the query for all values of labels that name clusters."""
    return f'group by ({", ".join(labels)}) ({metric}{{namespace!=""{where}}})'


def owners(metric: str, name: str, where: str, seconds: int | None = None) -> str:
    """Return the query for the owners of objects that exist now, or that existed at some time in the last `seconds`.

    `name` is the label that holds the name of the object.
    """
    selector = f'{metric}{{owner_is_controller!="false",{_HONOURED}{where}}}'
    found = selector if seconds is None else f"present_over_time({selector}[{seconds}s])"
    return f"group by (namespace, {name}, owner_kind, owner_name) ({found})"


def stated_amounts_query(metric: str, where: str) -> str:
    """Return the query for the requests or limits of containers."""
    selector = f'{metric}{{resource=~"cpu|memory",{_HONOURED}{where}}}'
    return f"max by (namespace, pod, container, resource) ({selector})"


def init_containers(where: str) -> str:
    """Return the query for containers that run before the others."""
    return f"group by (namespace, pod, container) (kube_pod_init_container_info{{{_HONOURED}{where}}})"


def autoscaler_targets(where: str) -> str:
    """Return the query for the target of each HorizontalPodAutoscaler."""
    labels = "namespace, horizontalpodautoscaler, scaletargetref_kind, scaletargetref_name"
    return f"group by ({labels}) ({HPA_METRIC}{{{_HONOURED}{where}}})"


def autoscaler_metrics(where: str) -> str:
    """Return the query for the HorizontalPodAutoscalers that follow CPU or memory."""
    selector = f'kube_horizontalpodautoscaler_spec_target_metric{{metric_name=~"cpu|memory",{_HONOURED}{where}}}'
    return f"group by (namespace, horizontalpodautoscaler, metric_name) ({selector})"


def kills(where: str, seconds: int) -> str:
    """Return the query for containers that were killed because they were out of memory, in the last `seconds`.

    The reason for a termination is shown until the next one. The container must therefore have restarted in this
    period, or its pod must have begun in it. If restarts are unknown, every period with the reason counts, which may be
    too many kills, but never too few.

    The former number of restarts is the last one within an hour, since kube-state-metrics itself may restart.
    """
    reason = f'kube_pod_container_status_last_terminated_reason{{reason="OOMKilled",{_HONOURED}{where}}}'
    restarts = f"kube_pod_container_status_restarts_total{{{_HONOURED}{where}}}"
    on = "on (namespace, pod, container)"
    killed = f"{_BY_CONTAINER} (max_over_time({reason}[{seconds}s])) > 0"
    restarted = f"{_BY_CONTAINER} (changes({restarts}[{seconds}s])) > 0"
    before = f"{_BY_CONTAINER} (last_over_time({restarts}[{_KNOWN_BEFORE_SECONDS}s] offset {seconds}s))"
    more = f"{_BY_CONTAINER} (max_over_time({restarts}[{seconds}s])) > {on} ({before})"
    return f"({killed}) and {on} (({restarted}) or {on} ({more})) or (({killed}) unless {on} ({before}))"


def pods_matcher(pods: Collection[str]) -> str:
    """Return a matcher of pods, with a leading comma."""
    return f",pod=~{go_quoted('|'.join(map(quote_pattern, sorted(pods))))}"


def container_matcher(container: str) -> str:
    """Return a matcher of one container, with a leading comma."""
    return f",container={go_quoted(container)}"
