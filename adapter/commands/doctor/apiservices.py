"""`doctor` checks who serves the metrics APIs, whether kube-apiserver reaches them, and whether a request succeeds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from adapter.commands.program import PROGRAM
from adapter.foundation.options.cluster_checks import unread
from adapter.foundation.reports.lines import SEE_APISERVER, CheckStatus, Line, error, ok, warning
from adapter.foundation.sources.kubernetes.errors import KubernetesError, NotFoundError, StatusError
from adapter.metrics.identity.certificates.apiservices import PATH, NotThere, Registered, read_apiservice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.objects.names import ObjectName
    from adapter.foundation.sources.kubernetes.writing import ObjectClient

AGGREGATOR_SECONDS = 5.0
"""Time after which kube-apiserver gives up on a discovery document."""
EXTERNAL_API = "v1beta1.external.metrics.k8s.io"
PREFERRED_CUSTOM_API = "v1beta2.custom.metrics.k8s.io"
"""The version that the HPA controller asks where it is registered; prometheus-adapter's chart does not register it."""
_SERVICES_OF_KEDA = frozenset({"keda-operator-metrics-apiserver", "keda-metrics-apiserver"})
"""Names of the Service in KEDA's chart and in its manifests; an adapter for other metrics often runs beside KEDA."""

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
_CERTIFICATE_REFUSED = "x509: "
"""What kube-apiserver writes before the reason why it refuses a certificate."""
_REPAIR_CERTIFICATE = (
    "kube-apiserver reaches the adapter, and refuses its certificate: see the line about it; the adapter's log says at "
    "`serving certificate` why the certificate is not renewed, or its CA is not written into caBundle"
)


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
        return _missing_line(line, name, required=required)
    registered, service = state.registered, state.registered.service
    if service is None or is_of_keda(state) or (expected is not None and service != expected):
        owner = f"the service {service}" if service else "kube-apiserver itself"
        ours = expected or "the adapter's Service"
        fix = (
            f"delete the APIService and create it for {ours}; or leave this API to its owner, and name the others with "
            "--apiservice"
        )
        return error(line, f"it belongs to {owner}, not to {ours}", fix)
    if state.available is not True:
        return _unavailable(line, state, service)
    if registered.unverified:
        fix = "put the CA of the serving certificate into caBundle, and set insecureSkipTLSVerify to false"
        return warning(line, f"it is available at {service}, whose certificate is not verified", fix)
    return ok(line, f"it is available at {service}")


def is_of_keda(state: State | None) -> bool:
    """Return whether an APIService points to a Service of KEDA."""
    return (
        isinstance(state, Seen)
        and state.registered.service is not None
        and state.registered.service.name in _SERVICES_OF_KEDA
    )


def judge_external_api_of_keda(state: Seen, *, served: bool | None) -> Line:
    """Return the line about external.metrics.k8s.io that is left to KEDA.

    `served` is whether the adapter's rules hold `externalRules`; None if unknown.
    """
    fix = "remove externalRules here, and write triggers of KEDA with the type prometheus; or remove KEDA"
    return judge_foreign(
        f"apiservice/{EXTERNAL_API}",
        state,
        "externalRules" if served else "",
        fix,
        owner=f"{state.registered.service} of KEDA",
    )


def judge_foreign(
    line: str, state: Seen, useless: str, fix: str, *, owner: str = "", status: CheckStatus = CheckStatus.WARNING
) -> Line:
    """Return the line about an APIService that another server may serve.

    `useless` is the key of the adapter's rules that have no effect because of it; empty if there are none. `status`
    and `fix` are for the line that says so. `owner` replaces the name of the Service.
    """
    owner = owner or str(state.registered.service or "kube-apiserver itself")
    away = f", and is not available: {state.reason}" if state.available is False else ""
    if useless:
        message = f"it belongs to {owner}{away}; an API has one server, so this adapter's {useless} have no effect"
        return Line(line, status, message, fix)
    if away:
        return warning(line, f"it belongs to {owner}{away}", "look at the pods of its owner")
    return ok(line, f"it belongs to {owner}")


def _missing_line(line: str, name: str, *, required: bool) -> Line:
    fix = f"create the APIService {name}, as the chart does"
    message = "it does not exist, so nothing serves this API"
    return error(line, message, fix) if required else warning(line, message, fix)


def _unavailable(line: str, state: Seen, service: ObjectName) -> Line:
    if state.available is None:
        return warning(
            line, "kube-apiserver has not reported yet whether it is available", "run this again in a minute"
        )
    if _CERTIFICATE_REFUSED in state.message:
        fix = _REPAIR_CERTIFICATE
    else:
        fix = _REPAIRS.get(state.reason, "see the log of kube-apiserver").format(service=service, port=state.port)
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
