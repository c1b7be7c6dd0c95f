"""`/scores`: the scores that the scheduler would get for a pod, with the reasons, for people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

import numpy as np

from adapter.foundation.objects.integers import INT64_MAX
from adapter.foundation.objects.names import is_namespace_name
from adapter.foundation.objects.pod_requests import ContainerResources, PodResources
from adapter.foundation.objects.quantities import QuantityError, parse_quantity
from adapter.foundation.time.timestamps import rfc3339
from adapter.foundation.web.http import Request, Response, json_line
from adapter.foundation.web.rendering import render_response
from adapter.foundation.web.routes import Route
from adapter.nodes.extender.prioritize import UnknownPolicyError, policy_named
from adapter.nodes.model.answers import API_VERSION, error_answer
from adapter.nodes.model.columns import PendingPod
from adapter.nodes.model.loads import VERDICTS
from adapter.nodes.scores.blend import fill_with_median
from adapter.nodes.scores.table import score_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.nodes.model.nodes_snapshot import NodesSnapshot
    from adapter.nodes.model.scheduling_settings import PolicySettings, SchedulingSettings
    from adapter.nodes.scores.policy_scores import PolicyScores

_NANO: Final = 10**9
_DEFAULT_CPU_MILLI: Final = 100
_DEFAULT_MEMORY_BYTES: Final = 200 * 2**20
"""Memory that kube-scheduler assumes for a container without requests."""
_PARAMETERS: Final = ("policy", "cpu", "memory", "gpu", "namespace")
_MOST_FIELDS: Final = 20
_MOST_GPUS: Final = 10_000
_GPU_COUNT: Final = re.compile("[0-9]{1,5}")


class _ParameterError(ValueError):
    """A query parameter cannot be used; the message names it."""


def scores_routes(snapshot: Callable[[], NodesSnapshot], settings: SchedulingSettings) -> tuple[Route, ...]:
    """Return the route of `/scores`."""

    def handle(request: Request) -> Response:
        try:
            fields = _fields(request.query)
            policy = policy_named(fields["policy"], settings)
            pod = _pod(fields, settings)
        except (_ParameterError, UnknownPolicyError) as e:
            return error_answer(400, str(e))
        return render_response(Response(200, json_line(_document(snapshot(), policy, pod))), request)

    return (Route("/scores", handle, ("GET", "HEAD")),)


def _fields(query: str) -> Mapping[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError as e:
        raise _ParameterError("the query is not that of a URL: write ?policy=target-load-packing&cpu=500m") from e
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name not in _PARAMETERS:
            raise _ParameterError(f"there is no parameter {name[:60]!r}: use {', '.join(_PARAMETERS)}")
        if name in fields:
            raise _ParameterError(f"the parameter {name} is given twice")
        fields[name] = value
    if "policy" not in fields:
        raise _ParameterError("the parameter policy is missing: write ?policy=target-load-packing&cpu=500m&memory=1Gi")
    return fields


def _pod(fields: Mapping[str, str], settings: SchedulingSettings) -> PendingPod:
    namespace = fields.get("namespace", "default")
    if not is_namespace_name(namespace):
        raise _ParameterError(f"the parameter namespace is not the name of a namespace: {namespace[:70]!r}")
    gpus = _gpu_count(fields.get("gpu", "0"))
    requests = {}
    if "cpu" in fields:
        requests["cpu"] = _amount("cpu", fields["cpu"], _NANO // 1000)
    if "memory" in fields:
        requests["memory"] = _amount("memory", fields["memory"], _NANO)
    non_zero = {
        "cpu": requests.get("cpu", _DEFAULT_CPU_MILLI),
        "memory": requests.get("memory", _DEFAULT_MEMORY_BYTES),
    }
    if gpus and not settings.gpu.resources:
        raise _ParameterError("the parameter gpu cannot be used: no resource counts as a GPU in the configuration")
    if gpus:
        requests[settings.gpu.resources[0]] = gpus
    resources = PodResources(requests, {}, non_zero, (ContainerResources(requests.get("cpu")),))
    return PendingPod(namespace, resources=resources, gpu_count=gpus, gpu_milli=1000 if gpus else 0)


def _amount(name: str, text: str, unit_nanos: int) -> int:
    """Return a quantity in the unit of its resource, rounded up as requests are."""
    try:
        nanos = parse_quantity(text).nanos
    except QuantityError as e:
        raise _ParameterError(f"the parameter {name} cannot be read: {e}") from e
    if nanos < 0:
        raise _ParameterError(f"the parameter {name} is negative")
    amount = -(-nanos // unit_nanos)
    if amount > INT64_MAX:
        raise _ParameterError(f"the parameter {name} is larger than any request: {text[:20]!r}")
    return amount


def _gpu_count(text: str) -> int:
    if not _GPU_COUNT.fullmatch(text) or int(text) > _MOST_GPUS:
        raise _ParameterError(f"the parameter gpu is not a number of GPUs from 0 to {_MOST_GPUS}: {text[:20]!r}")
    return int(text)


def _document(snapshot: NodesSnapshot, policy: PolicySettings, pod: PendingPod) -> dict[str, object]:
    names = snapshot.columns.names
    scores = score_nodes(policy, pod, snapshot, np.arange(len(names)))
    values: list[float] = fill_with_median(scores.values).tolist()
    last: list[bool] = np.isnan(scores.values).tolist()
    best_first = sorted(range(len(names)), key=lambda place: (last[place], -values[place], names[place]))
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeScores",
        "policy": policy.name,
        "basis": snapshot.basis,
        "window_end": rfc3339(snapshot.loads.window_end) if snapshot.loads else None,
        "scores": [
            _node_document(snapshot, scores, place, round(values[place], 2), is_known=not last[place])
            for place in best_first
        ],
    }


def _node_document(
    snapshot: NodesSnapshot, scores: PolicyScores, place: int, score: float, *, is_known: bool
) -> dict[str, object]:
    """Return the entry of one node. A node that is not known has the score that the scheduler gets for it."""
    name = snapshot.columns.names[place]
    row = snapshot.loads.index.get(name) if snapshot.loads else None
    resources = snapshot.loads.resources if snapshot.loads and row is not None else {}
    return {
        "node": name,
        "score": int(score) if score.is_integer() else score,
        "reason": scores.reason(place),
        "known": is_known,
        "verdicts": {str(resource): VERDICTS[load.verdicts[row]] for resource, load in resources.items()},
        "resolution_seconds": {
            str(resource): float(load.resolution_seconds[row])
            for resource, load in resources.items()
            if load.resolution_seconds[row] > 0
        },
        "estimated": [str(resource) for resource, load in resources.items() if load.is_estimated[row]],
    }
