"""The metrics of an HPA, requested as its controller requests them: by the same paths, selectors and fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from adapter.foundation.cluster.facts.requirements import label_selector_of
from adapter.foundation.cluster.forms.pods import LabelSelectorForm
from adapter.foundation.hpa.documents import milli
from adapter.foundation.hpa.pods import PodSample
from adapter.foundation.hpa.proposals import Observation, PodSamples, Totals, Unavailable
from adapter.foundation.objects.decoders import convert
from adapter.foundation.objects.durations import parse_go_duration
from adapter.foundation.objects.resources import ResolveResource, UnknownResourceError
from adapter.foundation.sources.kubernetes.access_rights import AccessRight
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from recommender.kubectl.reader import NotRead, Reader, object_path

CUSTOM: Final = "custom.metrics.k8s.io"
EXTERNAL: Final = "external.metrics.k8s.io"
RESOURCE: Final = "metrics.k8s.io"
_API_OF: Final = {"External": EXTERNAL, "Resource": RESOURCE, "ContainerResource": RESOURCE}
_NO_SUCH_PATH: Final = "404 page not found"
"""The answer of kube-apiserver if the API is not registered; an adapter that only lacks the metric says more."""
_VERSIONS: Final = ("v1beta2", "v1beta1")
"""Versions of custom.metrics.k8s.io, the newest first."""


FORM_ERRORS: Final = (KeyError, ValueError, TypeError, AttributeError)
"""What reading an answer in another form raises: whatever serves a metrics API, its answer must not prevent ours."""


def form_problem(api: str, error: Exception) -> str:
    """Return what is wrong with an answer whose reading raised one of `FORM_ERRORS`."""
    return f"the answer of {api} is not in the form of the API: {error!r}"


@dataclass(frozen=True, slots=True)
class AskedMetric:
    """One metric: the request and its result."""

    api: str
    metric: str
    """`NAME`, or `KIND/NAME` for a custom metric, as `tidewatch-adapter explain` takes it."""
    path: str
    query: Mapping[str, str]
    described: str
    """`KIND/NAME` of the one object that the metric describes; empty for pods and external metrics."""
    selector: str
    """The metric's own selector."""
    observation: Observation
    values_milli: Mapping[str, int]
    """Values by the name of the object, or by the labels of the series."""
    newest: float | None
    """Unix seconds of the newest value; None without values."""


class MetricsApis:
    """Asks the metrics APIs for one HPA."""

    def __init__(self, reader: Reader, namespace: str, pod_selector: str, resolve: ResolveResource) -> None:
        """`pod_selector` is the selector in the target's scale."""
        self._reader = reader
        self._namespace = namespace
        self._pods = pod_selector
        self._resolve = resolve
        self._version = ""

    def ask(self, metric: Mapping[str, Any]) -> AskedMetric:
        """Return the result for an entry of `spec.metrics`. Raises UnauthorizedError."""
        try:
            return self._ask(metric)
        except FORM_ERRORS as error:
            api = _API_OF.get(metric["type"], CUSTOM)
            return AskedMetric(
                api, str(metric["type"]), "", {}, "", "", Unavailable(form_problem(api, error)), {}, None
            )

    def _ask(self, metric: Mapping[str, Any]) -> AskedMetric:
        kind = metric["type"]
        if kind in {"Resource", "ContainerResource"}:
            return self._resource(metric["resource" if kind == "Resource" else "containerResource"])
        source = metric[kind.lower()]
        name, selector = source["metric"]["name"], _selector_text(source["metric"].get("selector"))
        if kind == "External":
            path = object_path(f"{EXTERNAL}/v1beta1", self._namespace, quote(name, safe=""))
            right = AccessRight("list", name, EXTERNAL, self._namespace)
            query = {"labelSelector": selector} if selector else {}
            return self._ask_metric(EXTERNAL, name, path, query, right, selector=selector)
        narrowed = {"metricLabelSelector": selector} if selector else {}
        if kind == "Pods":
            query = {"labelSelector": self._pods} | narrowed
            return self._custom("pods", "*", name, query, selector=selector)
        return self._object(source["describedObject"], name, narrowed, selector)

    def _object(self, described: Mapping[str, Any], name: str, query: Mapping[str, str], selector: str) -> AskedMetric:
        group = str(described.get("apiVersion", "")).rpartition("/")[0]
        kind, of = described["kind"], described["name"]
        try:
            plural = self._resolve(group, kind).qualified
        except (UnknownResourceError, KubernetesError) as error:
            return AskedMetric(CUSTOM, name, "", query, f"{kind}/{of}", selector, Unavailable(str(error)), {}, None)
        return self._custom(plural, of, name, query, selector=selector)

    def _custom(self, plural: str, of: str, name: str, query: Mapping[str, str], *, selector: str) -> AskedMetric:
        right = AccessRight("get", plural, CUSTOM, self._namespace, subresource=name)
        base = f"{CUSTOM}/{self._custom_version()}"
        if plural == "namespaces":
            # Whichever namespace an HPA names, its controller takes the metric of the HPA's own.
            of = self._namespace
            right = AccessRight("get", "metrics", CUSTOM, of, name)
            path = object_path(base, of, "metrics", name)
        else:
            path = f"{object_path(base, self._namespace, plural, of)}/{quote(name, safe='')}"
        described = "" if of == "*" else f"{plural}/{of}"
        return self._ask_metric(CUSTOM, f"{plural}/{name}", path, query, right, described=described, selector=selector)

    def _custom_version(self) -> str:
        if not self._version:
            found = self._reader.object(f"/apis/{CUSTOM}", AccessRight("get", f"/apis/{CUSTOM}"))
            versions = [] if isinstance(found, NotRead) else found.get("versions") or []
            served = {one.get("version") for one in versions}
            self._version = next((version for version in _VERSIONS if version in served), _VERSIONS[0])
        return self._version

    def _resource(self, source: Mapping[str, Any]) -> AskedMetric:
        name, container = source["name"], source.get("container", "")
        path, query = object_path(f"{RESOURCE}/v1beta1", self._namespace, "pods"), {"labelSelector": self._pods}
        found = self._reader.items(path, AccessRight("list", "pods", RESOURCE, self._namespace), query)
        if isinstance(found, NotRead):
            return AskedMetric(RESOURCE, name, path, query, "", "", _unread(RESOURCE, found), {}, None)
        samples = {one["metadata"]["name"]: sample for one in found if (sample := _usage(one, name, container))}
        if not samples:
            nothing = Unavailable(f"{RESOURCE} has no {name} of any of these pods")
            return AskedMetric(RESOURCE, name, path, query, "", "", nothing, {}, None)
        values = {pod: sample.milli for pod, sample in samples.items()}
        newest = max(sample.timestamp for sample in samples.values())
        return AskedMetric(RESOURCE, name, path, query, "", "", PodSamples(samples), values, newest)

    def _ask_metric(
        self,
        api: str,
        metric: str,
        path: str,
        query: Mapping[str, str],
        right: AccessRight,
        *,
        described: str = "",
        selector: str = "",
    ) -> AskedMetric:
        found = self._reader.items(path, right, query)
        if isinstance(found, NotRead):
            return AskedMetric(api, metric, path, query, described, selector, _unread(api, found), {}, None)
        if not found:
            nothing = Unavailable("the API returned no value")
            return AskedMetric(api, metric, path, query, described, selector, nothing, {}, None)
        newest = max(_moment(item["timestamp"]) for item in found)
        observation = _by_pod(found) if metric.startswith("pods/") and not described else _totals(found)
        return AskedMetric(api, metric, path, query, described, selector, observation, _values(found), newest)


def _unread(api: str, found: NotRead) -> Unavailable:
    if found.is_absent and found.reason.endswith(_NO_SUCH_PATH):
        return Unavailable(f"{api} is not served in this cluster: see `kubectl get apiservices`")
    return Unavailable(found.reason)


def _by_pod(items: Sequence[Mapping[str, Any]]) -> PodSamples:
    return PodSamples(
        {item["describedObject"]["name"]: PodSample(milli(item["value"]), _moment(item["timestamp"])) for item in items}
    )


def _totals(items: Sequence[Mapping[str, Any]]) -> Totals:
    return Totals(tuple(milli(item["value"]) for item in items))


def _values(items: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    values: dict[str, int] = {}
    for item in items:
        labels = item.get("metricLabels") or {}
        series = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        name = (item.get("describedObject") or {}).get("name") or series or "total"
        values[name] = values.get(name, 0) + milli(item["value"])
    return values


def _usage(pod: Mapping[str, Any], resource: str, container: str) -> PodSample | None:
    """Return the usage of a pod; None, as in the controller, if a container that counts lacks a value."""
    counted = [one for one in pod.get("containers") or () if not container or one["name"] == container]
    usages = [(one.get("usage") or {}).get(resource) for one in counted]
    if not usages or any(usage is None for usage in usages):
        return None
    window = parse_go_duration(pod.get("window", "1m"))
    return PodSample(sum(milli(usage) for usage in usages), _moment(pod["timestamp"]), window)


def _selector_text(selector: Mapping[str, Any] | None) -> str:
    if not selector:
        return ""
    return str(label_selector_of("the metric's selector", convert(selector, LabelSelectorForm)) or "")


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
