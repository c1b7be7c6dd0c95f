"""`doctor` checks who serves the metrics APIs, whether kube-apiserver reaches them, and whether a request succeeds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from adapter.commands.program import PROGRAM
from adapter.foundation.options.cluster_checks import unread
from adapter.foundation.reports.lines import SEE_APISERVER, Line, error, ok, warning
from adapter.foundation.sources.kubernetes.errors import KubernetesError, NotFoundError, StatusError
from adapter.metrics.identity.certificates.apiservices import PATH, NotThere, Registered, read_apiservice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.objects.names import ObjectName
    from adapter.foundation.sources.kubernetes.writing import ObjectClient

AGGREGATOR_SECONDS = 5.0
"""Time after which kube-apiserver gives up on a discovery document."""

_REPAIRS = {
    "ServiceNotFound": (
        "create the Service {service}, or point the APIService to the right one; if the release is gone, run "
        f"`{PROGRAM} doctor --remove`"
    ),
    "ServicePortError": "give the Service {service} the port that the APIService names ({port})",
    "EndpointsNotFound": "check that the selector of the Service {service} matches the labels of the adapter's pods",
    "MissingEndpoints": (
        "no pod of the Service {service} is ready: look at /readyz?verbose of each; to delete namespaces meanwhile, "
        f"run `{PROGRAM} doctor --remove`, and `helm upgrade` to register the API again"
    ),
    "FailedDiscoveryCheck": (
        "kube-apiserver cannot reach the Service {service}: see the line about its certificate, and check whether a "
        "NetworkPolicy or a firewall keeps the control plane from the pods"
    ),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """An APIService, and what kube-apiserver reports about it."""

    registered: Registered
    port: int
    available: bool | None
    """None if kube-apiserver has not reported it yet."""
    reason: str
    message: str


State: TypeAlias = Seen | NotThere | KubernetesError


def look_at_apiservice(client: ObjectClient, name: str) -> State:
    """Return the APIService, or why it could not be read."""
    try:
        return seen_in(client.get(f"{PATH}/{name}").document)
    except NotFoundError:
        return NotThere()
    except KubernetesError as e:
        return e


def seen_in(document: Mapping[str, Any]) -> Seen:
    """Return the state of an APIService from the API server's document."""
    conditions = (document.get("status") or {}).get("conditions") or ()
    found: Mapping[str, Any] = next((one for one in conditions if one.get("type") == "Available"), {})
    service = (document.get("spec") or {}).get("service") or {}
    return Seen(
        read_apiservice(document),
        int(service.get("port") or 443),
        {"True": True, "False": False}.get(str(found.get("status"))),
        str(found.get("reason", "")),
        str(found.get("message", "")),
    )


def judge_apiservice(name: str, state: State, expected: ObjectName | None, *, required: bool) -> Line:
    """Return the line about an APIService that the adapter should serve; `expected` is its Service; None if unknown."""
    line = f"apiservice/{name}"
    if isinstance(state, KubernetesError):
        return unread(line, state, f"get on the apiservice {name}")
    if isinstance(state, NotThere):
        return _missing(line, name, required=required)
    registered, service = state.registered, state.registered.service
    if service is None or (expected is not None and service != expected):
        owner = f"the service {service}" if service else "kube-apiserver itself"
        fix = f"delete the APIService and create it for {expected}, or leave this API to its owner"
        return error(line, f"it belongs to {owner}, not to {expected or 'a metrics adapter'}", fix)
    if state.available is not True:
        return _unavailable(line, state, service)
    if registered.unverified:
        fix = "put the CA of the serving certificate into caBundle, and set insecureSkipTLSVerify to false"
        return warning(line, f"it is available at {service}, whose certificate is not verified", fix)
    return ok(line, f"it is available at {service}")


def _missing(line: str, name: str, *, required: bool) -> Line:
    fix = f"create the APIService {name}, as the chart does"
    message = "it does not exist, so nothing serves this API"
    return error(line, message, fix) if required else warning(line, message, fix)


def _unavailable(line: str, state: Seen, service: ObjectName) -> Line:
    if state.available is None:
        return warning(
            line, "kube-apiserver has not reported yet whether it is available", "run this again in a minute"
        )
    default = "see the log of kube-apiserver"
    fix = _REPAIRS.get(state.reason, default).format(service=service, port=state.port)
    message = f"it is not available: {state.reason}: {state.message}; until it is, no namespace can be deleted"
    return error(line, message, fix)


def look_at_request(client: ObjectClient, name: str) -> tuple[Line]:
    """Request the list of an API's metrics through kube-apiserver, as kubectl does."""
    version, _, group = name.partition(".")
    began = time.monotonic()
    try:
        document = client.get(f"/apis/{group}/{version}").document
    except KubernetesError as e:
        return (judge_refusal(name, e),)
    return (judge_answer(name, document, time.monotonic() - began),)


def judge_answer(name: str, document: Mapping[str, Any], seconds: float) -> Line:
    """Return the line about a request that was answered with a list of metrics."""
    line = f"request/{name}"
    found = document.get("resources")
    if document.get("kind") != "APIResourceList" or not isinstance(found, list):
        return error(line, "the answer is not a list of resources", "check which server is behind this APIService")
    if seconds > AGGREGATOR_SECONDS:
        fix = "check whether the adapter's CPU limit is too low"
        return error(line, f"the list took {seconds:.1f} s, and kube-apiserver waits {AGGREGATOR_SECONDS:g} s", fix)
    if not found:
        fix = f"run `{PROGRAM} check` with --prometheus-url to see which rules find series"
        return warning(line, "kube-apiserver gets an answer, and the list of metrics is empty", fix)
    return ok(line, f"kube-apiserver gets an answer in {seconds:.2f} s, with {len(found)} entries")


def judge_refusal(name: str, failure: KubernetesError) -> Line:
    """Return the line about a request that failed."""
    line = f"request/{name}"
    if isinstance(failure, StatusError):
        fixes = {
            403: "bind this user to the ClusterRole system:discovery; if it is bound, see the adapter's log",
            404: "see the line about the APIService",
            503: "see the lines about the APIService and its certificate",
        }
        return error(line, f"the request failed: {failure}", fixes.get(failure.code, "see the adapter's log"))
    return error(line, f"the request failed: {failure}", SEE_APISERVER)
