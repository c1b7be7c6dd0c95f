"""The HPA loop of the demo: asks the adapter as kube-controller-manager does through the API server, and decides.

It only reads the adapter's HTTPS answers, not Prometheus or the fleet's counters. The arithmetic is
`recommender.hpa`. A Pods metric and an External metric have the same average as target; the larger proposal wins.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import urllib3

from adapter.objects.quantities import parse_quantity
from demo.fleet import LABELS, NAMESPACE
from demo.records import Served, Sync
from recommender.hpa import (
    DEFAULT_SCALE_DOWN,
    DEFAULT_SCALE_UP,
    AverageValue,
    Behaviour,
    ExternalMetric,
    HpaHistory,
    HPASpec,
    Pod,
    PodPhase,
    PodSample,
    PodSamples,
    PodsMetric,
    Totals,
    Unavailable,
    Workload,
    evaluate,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from demo.feed import FleetFeed
    from demo.records import Target
    from demo.stage import Api

PODS_METRIC = "websocket_connections"
EXTERNAL_METRIC = "websocket_connections_by_namespace"
SELECTOR = ",".join(f"{key}%3D{value}" for key, value in LABELS.items())
PODS_PATH = (
    f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NAMESPACE}/pods/%2A/{PODS_METRIC}?labelSelector={SELECTOR}"
)
EXTERNAL_PATH = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{NAMESPACE}/{EXTERNAL_METRIC}"
REQUEST_SECONDS = 5.0
FIRST_METRICS_SECONDS = 30.0
CALLER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"


class NoMetricsError(Exception):
    """The adapter does not serve the demo's metrics in time; the message holds its last answer."""


class HpaController:
    """One HPA over the fleet."""

    def __init__(self, api: Api, target: Target) -> None:
        """Set the adapter to ask; nothing is sent yet."""
        self._spec = _spec(target)
        self._history = HpaHistory()
        self._pool = urllib3.connection_from_url(
            api.url,
            ca_certs=str(api.ca_file),
            cert_file=str(api.client.certificate_file),
            key_file=str(api.client.key_file),
            headers={
                "Accept": "application/vnd.kubernetes.protobuf, */*",
                "X-Remote-User": CALLER,
                "X-Remote-Group": "system:authenticated",
            },
            retries=False,
            timeout=REQUEST_SECONDS,
        )

    def wait_for_metrics(self, fleet: FleetFeed) -> None:
        """Return when the adapter has a value for each pod; raises NoMetricsError after half a minute."""
        until = time.monotonic() + FIRST_METRICS_SECONDS
        while True:
            connections, total = self._pods_metric(), self._external_metric()
            pods = {pod["name"] for pod in fleet.state["pods"]}
            if isinstance(connections, Served) and isinstance(total, Served) and pods <= connections.values.keys():
                return
            if time.monotonic() > until:
                raise NoMetricsError(f"no first value after {FIRST_METRICS_SECONDS:.0f} s: {connections}, {total}")
            time.sleep(0.2)

    def sync(self, seconds: float, replicas: int, state: Mapping[str, Any]) -> Sync:
        """Return the decision of an HPA now, with the adapter's answers.

        `seconds` is the loop's own clock, `replicas` what was asked for last.
        """
        connections, total = self._pods_metric(), self._external_metric()
        pods = state["pods"]
        workload = Workload(spec_replicas=replicas, status_replicas=len(pods), pods=tuple(map(_pod, pods)))
        decision = evaluate(
            self._spec, workload, (_pod_samples(connections), _totals(total)), self._history, now=seconds
        )
        self._history = decision.history
        return Sync(
            seconds=seconds,
            replicas=replicas,
            status_replicas=len(pods),
            pods=tuple(pod["name"] for pod in pods),
            pending=tuple(pod["name"] for pod in pods if pod["port"] is None),
            connections=connections if isinstance(connections, Served) else None,
            total=total if isinstance(total, Served) else None,
            errors=tuple(answer for answer in (connections, total) if isinstance(answer, str)),
            desired=decision.desired,
            reason=str(decision.reason),
        )

    def _pods_metric(self) -> Served | str:
        return self._get(PODS_PATH, lambda item: item["describedObject"]["name"])

    def _external_metric(self) -> Served | str:
        return self._get(EXTERNAL_PATH, lambda _: "")

    def _get(self, path: str, name_of: Any) -> Served | str:  # noqa: ANN401 - a function of an item to its name
        """Return the answer, or a sentence that says what went wrong."""
        try:
            response = self._pool.request("GET", path)
        except urllib3.exceptions.HTTPError as error:
            return f"{path}: {error}"
        document = msgspec.json.decode(response.data)
        if response.status != 200:
            return f"{response.status}: {document['message']}"
        values: dict[str, int] = {}
        for item in document["items"]:
            name = name_of(item)
            values[name] = values.get(name, 0) + parse_quantity(item["value"]).milli_value()
        stamps = {datetime.fromisoformat(item["timestamp"]).timestamp() for item in document["items"]}
        if len(stamps) != 1:
            return f"{path}: {len(document['items'])} items with {len(stamps)} timestamps"
        return Served(received=time.time(), stamped=stamps.pop(), values=values)


def _spec(target: Target) -> HPASpec:
    average = AverageValue(target.connections_per_pod * 1000)
    down = replace(DEFAULT_SCALE_DOWN, stabilization_window_seconds=int(target.scale_down_window_seconds))
    period = int(target.scale_up_period_seconds)
    up = replace(
        DEFAULT_SCALE_UP, policies=tuple(replace(policy, period_seconds=period) for policy in DEFAULT_SCALE_UP.policies)
    )
    return HPASpec(
        metrics=(PodsMetric(PODS_METRIC, average), ExternalMetric(EXTERNAL_METRIC, average)),
        min_replicas=target.min_replicas,
        max_replicas=target.max_replicas,
        behaviour=Behaviour(scale_up=up, scale_down=down),
    )


def _pod(pod: Mapping[str, Any]) -> Pod:
    return Pod(pod["name"], phase=PodPhase.PENDING if pod["port"] is None else PodPhase.RUNNING)


def _pod_samples(answer: Served | str) -> PodSamples | Unavailable:
    if isinstance(answer, str):
        return Unavailable(answer)
    return PodSamples({name: PodSample(milli) for name, milli in answer.values.items()})


def _totals(answer: Served | str) -> Totals | Unavailable:
    return Unavailable(answer) if isinstance(answer, str) else Totals(tuple(answer.values.values()))
