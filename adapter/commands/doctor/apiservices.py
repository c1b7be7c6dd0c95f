"""Doctor: who answers for the metrics APIs, whether kube-apiserver reaches them, and what comes of a request."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from adapter.commands.program import PROGRAM
from adapter.identity.certificates.apiservices import PATH, NotThere, Registered, read_apiservice
from adapter.reports.lines import Line, error, ok, unknown, warning
from adapter.sources.kubernetes.errors import ForbiddenError, KubernetesError, NotFoundError, StatusError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.identity.certificates.certificate_secret import ObjectName
    from adapter.sources.kubernetes.writing import ObjectClient

AGGREGATOR_SECONDS = 5.0
"""After which kube-apiserver gives up on a discovery document."""

_REPAIRS = {
    "ServiceNotFound": "create the Service {service}, or let the APIService point to the right one",
    "ServicePortError": "give the Service {service} the port that the APIService names ({port})",
    "EndpointsNotFound": "see that the selector of the Service {service} fits the labels of the adapter's pods",
    "MissingEndpoints": "no pod behind the Service {service} is ready: see their /readyz?verbose",
    "FailedDiscoveryCheck": (
        "kube-apiserver cannot ask the Service {service}: see the line about its certificate, and whether a "
        "NetworkPolicy or firewall lets the control plane reach the pods"
    ),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """An APIService and how kube-apiserver finds it."""

    registered: Registered
    port: int
    available: bool | None
    """None: kube-apiserver has not said."""
    reason: str
    message: str


State: TypeAlias = Seen | NotThere | KubernetesError


def look_at_apiservice(client: ObjectClient, name: str) -> State:
    """Return the APIService, or why it is not known."""
    try:
        return seen_in(client.get(f"{PATH}/{name}").document)
    except NotFoundError:
        return NotThere()
    except KubernetesError as e:
        return e


def seen_in(document: Mapping[str, Any]) -> Seen:
    """Return what the APIService, as the API server gives it, says."""
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
    """Return the line about an APIService that the adapter is to answer; `expected` is its Service, if known."""
    line = f"apiservice/{name}"
    if isinstance(state, KubernetesError):
        return unread(line, state, f"get on the apiservice {name}")
    if isinstance(state, NotThere):
        return _missing(line, name, required=required)
    registered, service = state.registered, state.registered.service
    if service is None or (expected is not None and service != expected):
        owner = f"the service {service}" if service else "kube-apiserver itself"
        fix = f"delete the APIService and let it point to {expected}, or leave this API to its owner"
        return error(line, f"it belongs to {owner}, not to {expected or 'a metrics adapter'}", fix)
    if state.available is not True:
        return _unavailable(line, state, service)
    if registered.unverified:
        fix = "put the CA of the serving certificate into caBundle, and insecureSkipTLSVerify to false"
        return warning(line, f"it is available at {service}, whose certificate is not verified", fix)
    return ok(line, f"it is available at {service}")


def _missing(line: str, name: str, *, required: bool) -> Line:
    fix = f"create the APIService {name}, as the chart does"
    message = "it does not exist: nobody answers for this API"
    return error(line, message, fix) if required else warning(line, message, fix)


def _unavailable(line: str, state: Seen, service: ObjectName) -> Line:
    if state.available is None:
        return warning(line, "kube-apiserver has not said yet whether it is available", "ask again in a minute")
    default = "see the log of kube-apiserver"
    fix = _REPAIRS.get(state.reason, default).format(service=service, port=state.port)
    message = f"it is not available: {state.reason}: {state.message}; while so, no namespace can be deleted"
    return error(line, message, fix)


def look_at_request(client: ObjectClient, name: str) -> tuple[Line]:
    """Ask for the list of an API's metrics through kube-apiserver, as kubectl does."""
    version, _, group = name.partition(".")
    began = time.monotonic()
    try:
        document = client.get(f"/apis/{group}/{version}").document
    except KubernetesError as e:
        return (judge_refusal(name, e),)
    return (judge_answer(name, document, time.monotonic() - began),)


def judge_answer(name: str, document: Mapping[str, Any], seconds: float) -> Line:
    """Return the line about a list of metrics that came."""
    line = f"request/{name}"
    found = document.get("resources")
    if document.get("kind") != "APIResourceList" or not isinstance(found, list):
        return error(line, "the answer is not a list of resources", "see what answers behind this APIService")
    if seconds > AGGREGATOR_SECONDS:
        fix = "see whether the adapter's processor time is limited too tightly"
        return error(line, f"the list took {seconds:.1f} s, and kube-apiserver waits {AGGREGATOR_SECONDS:g} s", fix)
    if not found:
        fix = f"run `{PROGRAM} check` with --prometheus-url to see which rules find series"
        return warning(line, "it is answered through kube-apiserver, and lists no metric", fix)
    return ok(line, f"it is answered through kube-apiserver in {seconds:.2f} s, {len(found)} entries")


def judge_refusal(name: str, failure: KubernetesError) -> Line:
    """Return the line about a request that was not answered."""
    line = f"request/{name}"
    if isinstance(failure, StatusError):
        fixes = {
            403: "bind this user to the ClusterRole system:discovery; if it is, see the log of the adapter",
            404: "see the line about the APIService",
            503: "see the lines about the APIService and its certificate",
        }
        return error(line, f"it is not answered: {failure}", fixes.get(failure.code, "see the log of the adapter"))
    return error(line, f"it is not answered: {failure}", "see the line about kube-apiserver")


def unread(line: str, failure: KubernetesError, right: str) -> Line:
    """Return the line about an object that could not be read."""
    if isinstance(failure, ForbiddenError):
        return unknown(line, f"it may not be looked at: {failure}", f"grant {right}, or run this as somebody who may")
    return unknown(line, f"it could not be looked at: {failure}", "see the line about kube-apiserver")
