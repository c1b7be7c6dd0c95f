"""Repeats one request and times the answers: `python -m benchmarks.prober PLAN`.

The client acts as the API server: mutual TLS, one connection that is kept alive, and one request after another, each at
its intended time. Latency counts from that time, so that requests delayed by a stall count as well. It is a process
with one thread, so that it disturbs neither its own clock nor the server's processor.
"""

from __future__ import annotations

import gc
import http.client
import ssl
import sys
import time
from pathlib import Path

import msgspec

from benchmarks.aggregator_client import Endpoint  # noqa: TC001 - msgspec reads the annotations
from benchmarks.fleet_of_pods import Fleet  # noqa: TC001 - likewise
from benchmarks.judging import WrongAnswerError, judge_pods
from benchmarks.tally import Outcome, Tally

RESOURCES = "/apis/custom.metrics.k8s.io/v1beta1"
_HEADERS = {
    "X-Remote-User": "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
    "X-Remote-Group": "system:authenticated",
    "Accept": "application/json",
}


class ProbePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The request, and when it is sent. Moments are monotonic seconds, which all processes of a machine share."""

    endpoint: Endpoint
    fleet: Fleet
    app: int | None
    """The app whose pods' metric is requested; None to request the list of all metrics."""
    list_file: str
    """The file with the expected list."""
    period_seconds: float
    start_at: float
    end_at: float
    timeout_seconds: float = 10.0
    result_file: str

    @property
    def path(self) -> str:
        """Return the path of the request."""
        if self.app is None:
            return RESOURCES
        fleet, app = self.fleet, self.app
        return (
            f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{fleet.namespace(app)}/pods/%2A/"
            f"{fleet.metric_name(fleet.metric_of(app))}?labelSelector=app%3D{fleet.name(app)}"
        )


class Requester:
    """One connection, which is opened again after a failure."""

    def __init__(self, endpoint: Endpoint, timeout_seconds: float) -> None:
        context = ssl.create_default_context(cafile=endpoint.ca_file)
        context.load_cert_chain(endpoint.certificate_file, endpoint.key_file)
        self._connection = http.client.HTTPSConnection(
            "localhost", endpoint.port, timeout=timeout_seconds, context=context
        )

    def get(self, path: str) -> tuple[int, bytes]:
        """Return status and body; raises OSError and http.client.HTTPException."""
        try:
            self._connection.request("GET", path, headers=_HEADERS)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def probed(plan: ProbePlan) -> Outcome:
    """Send requests until the plan ends, and return the outcome."""
    requester = Requester(plan.endpoint, plan.timeout_seconds)
    wanted = Path(plan.list_file).read_bytes()
    tally = Tally(plan.start_at, plan.start_at)
    number = 0
    while (intended := plan.start_at + number * plan.period_seconds) < plan.end_at:
        number += 1
        time.sleep(max(0.0, intended - time.monotonic()))
        tally.noticed(intended, time.monotonic())
        try:
            status, body = requester.get(plan.path)
            now = time.monotonic()
            stamp = _judged(plan, wanted, status, body)
        except (OSError, http.client.HTTPException, WrongAnswerError) as e:
            tally.failed(intended, f"{type(e).__name__}: {e}")
        else:
            tally.answered(intended, now - intended, time.time() - stamp)
    requester.close()
    return tally.outcome(plan.end_at - plan.start_at)


def _judged(plan: ProbePlan, wanted: bytes, status: int, body: bytes) -> float:
    """Return the time of the values in Unix seconds; raises WrongAnswerError."""
    if plan.app is not None:
        return judge_pods(plan.fleet, plan.app, status, body)
    if status != 200 or body != wanted:
        raise WrongAnswerError(f"status {status} and {len(body)} bytes: not the list as it must be")
    return time.time()


def main() -> None:
    """Carry out the plan and write the outcome."""
    plan = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=ProbePlan)
    gc.freeze()
    gc.disable()
    Path(plan.result_file).write_bytes(msgspec.json.encode(probed(plan)))


if __name__ == "__main__":
    main()
