"""The HPA loop of the demo: it asks the adapter as kube-controller-manager does through the API server, and decides.

It only reads the adapter's HTTPS answers, not Prometheus or the fleet's counters. The arithmetic is
`adapter.foundation.hpa`. A Pods metric, an External metric and, for a fleet that follows a forecast, the predicted load
have the same target average; the largest proposal wins.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import urllib3

from adapter.foundation.hpa.evaluation import evaluate
from adapter.foundation.hpa.history import HpaHistory
from adapter.foundation.hpa.pods import Pod, PodPhase, PodSample
from adapter.foundation.hpa.proposals import HpaWorkload, PodSamples, Totals, Unavailable
from adapter.foundation.hpa.rules import DEFAULT_SCALE_DOWN, DEFAULT_SCALE_UP, Behaviour
from adapter.foundation.hpa.spec import AverageValue, ExternalMetric, HPASpec, PodsMetric
from adapter.foundation.objects.quantities import parse_quantity
from demo.fleet import LABELS
from demo.records import Served, Sync

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from demo.feed import FleetFeed
    from demo.records import Target
    from demo.stage import Api

PODS_METRIC = "websocket_connections"
EXTERNAL_METRIC = "websocket_connections_by_namespace"
PREDICTED_METRIC = "predicted_load"
SELECTOR = ",".join(f"{key}%3D{value}" for key, value in LABELS.items())
PREDICTED_SELECTOR = "target_kind%3DDeployment,target_name%3Dgateway"
REQUEST_SECONDS = 5.0
FIRST_METRICS_SECONDS = 30.0
CALLER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"


class NoMetricsError(Exception):
    """The adapter did not serve the demo's metrics in time; the message holds its last answer."""


class HpaController:
    """One HPA over the fleet."""

    def __init__(self, api: Api, target: Target) -> None:
        """Remember the adapter to ask; nothing is sent yet."""
        custom = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{target.namespace}"
        external = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{target.namespace}"
        self._pods_path = f"{custom}/pods/%2A/{PODS_METRIC}?labelSelector={SELECTOR}"
        self._total_path = f"{external}/{EXTERNAL_METRIC}"
        self._predicted_path = f"{external}/{PREDICTED_METRIC}?labelSelector={PREDICTED_SELECTOR}"
        self._follows_forecast = target.follows_forecast
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

    def wait_for_metrics(self, fleet: FleetFeed, sleep: Callable[[float], None]) -> None:
        """Wait until the adapter has a value for each pod and metric; raises NoMetricsError after half a minute."""
        until = time.monotonic() + FIRST_METRICS_SECONDS
        while True:
            connections, totals = self._pods_metric(), self._totals()
            pods = {pod["name"] for pod in fleet.state["pods"]}
            if (
                isinstance(connections, Served)
                and all(isinstance(total, Served) for total in totals)
                and pods <= connections.values.keys()
            ):
                return
            if time.monotonic() > until:
                raise NoMetricsError(f"no first value after {FIRST_METRICS_SECONDS:.0f} s: {connections}, {totals}")
            sleep(0.2)

    def sync(self, seconds: float, replicas: int, state: Mapping[str, Any]) -> Sync:
        """Return the decision of an HPA now, with the adapter's answers.

        `seconds` is the loop's own clock, and `replicas` the number that was requested last.
        """
        connections, totals = self._pods_metric(), self._totals()
        total, predicted = totals[0], totals[1] if self._follows_forecast else None
        pods = state["pods"]
        workload = HpaWorkload(spec_replicas=replicas, status_replicas=len(pods), pods=tuple(map(_pod, pods)))
        decision = evaluate(
            self._spec, workload, (_pod_samples(connections), *map(_totals, totals)), self._history, now=seconds
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
            predicted=predicted if isinstance(predicted, Served) else None,
            errors=tuple(answer for answer in (connections, *totals) if isinstance(answer, str)),
            desired=decision.desired,
            reason=str(decision.reason),
        )

    def _pods_metric(self) -> Served | str:
        return self._get(self._pods_path, lambda item: item["describedObject"]["name"])

    def _totals(self) -> tuple[Served | str, ...]:
        """Return the External metrics: all connections and, for a fleet that follows a forecast, the predicted ones."""
        paths = (self._total_path, self._predicted_path) if self._follows_forecast else (self._total_path,)
        return tuple(self._get(path, lambda _: "") for path in paths)

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
    externals = (EXTERNAL_METRIC, PREDICTED_METRIC) if target.follows_forecast else (EXTERNAL_METRIC,)
    return HPASpec(
        metrics=(PodsMetric(PODS_METRIC, average), *(ExternalMetric(name, average) for name in externals)),
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
