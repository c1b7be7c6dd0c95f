"""Single facts from outside: the value of a query, and the content of a ConfigMap. No function here raises."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from adapter.cluster.state import Observed, Unknown
from adapter.sources.kubernetes.errors import KubernetesError, NotFoundError
from adapter.sources.prometheus.errors import PrometheusError
from adapter.timing.pace import UNPACED
from recommender.decisions.inputs import ConfigMapData

if TYPE_CHECKING:
    from adapter.sources.kubernetes.writing import Reply
    from adapter.sources.prometheus.client import PrometheusClient


class ObjectReader(Protocol):
    """What is asked of the API server (`writing.ObjectClient`)."""

    def get(self, path: str, *, seconds: float) -> Reply:
        """Return the object."""
        ...


def query_value(prometheus: PrometheusClient, expr: str, seconds: float) -> Observed[float] | Unknown:
    """Return the one value of a query. No sample, several samples and a partial answer are unknown."""
    try:
        answer = prometheus.instant(expr, timeout_seconds=seconds)
        samples = [sample for batch in answer.batches(UNPACED) for sample in batch]
    except PrometheusError as error:
        return Unknown(str(error))
    if answer.warnings:
        return Unknown(f"Prometheus warns that the answer may be partial: {answer.warnings[0]}")
    if len(samples) != 1:
        fix = "aggregate it to one, such as with sum()" if samples else "check that Prometheus has its series"
        return Unknown(f"the query has {len(samples)} samples: {fix}")
    if not math.isfinite(samples[0].value):
        return Unknown(f"the value is {samples[0].value}: correct the query")
    return Observed(samples[0].value, answer.evaluated_at)


def config_map(
    objects: ObjectReader, namespace: str, name: str, now: float, seconds: float
) -> Observed[ConfigMapData | None] | Unknown:
    """Return the content of a ConfigMap, read at `now`."""
    try:
        document = objects.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}", seconds=seconds).document
    except NotFoundError:
        return Observed(None, now)
    except KubernetesError as error:
        return Unknown(str(error))
    data = document.get("data") or {}
    return Observed(ConfigMapData(data, (document.get("metadata") or {}).get("resourceVersion", "")), now)
