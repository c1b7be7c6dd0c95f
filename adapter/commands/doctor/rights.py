"""`doctor` checks the rights of the adapter and of the HPA controller, and the CA of the front proxy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapter.foundation.objects.names import ObjectName
from adapter.foundation.options.cluster_checks import unread, unreviewed_line
from adapter.foundation.reports.definitions import DefinedKind
from adapter.foundation.reports.lines import CheckStatus, Line, error, ok, warning
from adapter.foundation.sources.kubernetes.access_rights import AccessRight, Subject, is_allowed
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.metrics.identity.authentication_config_map import CLIENT_CA, NAME, NAMESPACE, WHERE, front_proxy_of
from adapter.metrics.identity.authorities import parse_bundle
from adapter.metrics.identity.callers import IdentitySettingsError
from adapter.metrics.rulebook.objects.metric_rule import GROUP, PLURAL, RULE_OF_OBJECT, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from cryptography import x509

    from adapter.foundation.sources.kubernetes.writing import ObjectClient


METRIC_RULES = DefinedKind(
    GROUP,
    VERSION,
    PLURAL,
    frozenset({"spec.api", "spec.rule"} | {f"spec.rule.{key.key}" for key in RULE_OF_OBJECT.keys}),
    lost="MetricRules: none of them is served",
)
"""The kind MetricRule, with the fields that its installed definition must have."""
HPA_CONTROLLER = ObjectName("kube-system", "horizontal-pod-autoscaler")


@dataclass(frozen=True, slots=True)
class Need:
    """A right that somebody should have."""

    name: str
    """Name of the line."""
    right: AccessRight
    lost: str
    """The consequence if the right is missing."""
    fix: str
    status: CheckStatus = CheckStatus.ERROR
    """Status of the line if the right is missing."""


def needs_of_adapter(secret: ObjectName | None, apiservices: Sequence[str]) -> Iterator[Need]:
    """Yield the rights that the adapter needs; `secret` is the Secret of its serving certificate, if it has one."""
    for verb in ("list", "watch"):
        lost = "metrics of pods that a selector picks: HPAs on Pods metrics get 503"
        yield _need_of_adapter(AccessRight(verb, "pods"), lost, "a ClusterRole with list and watch on pods")
    for verb in ("list", "watch"):
        for plural in ("nodes", "namespaces"):
            lost = f"metrics of {plural} that a selector picks"
            yield _need_of_adapter(
                AccessRight(verb, plural),
                lost,
                f"a ClusterRole with list and watch on {plural}",
                CheckStatus.WARNING,
            )
    delegator = "the ClusterRole system:auth-delegator, by a ClusterRoleBinding"
    lost = "authorization of direct callers, and of requests that kube-apiserver passes on"
    yield _need_of_adapter(
        AccessRight("create", "subjectaccessreviews", "authorization.k8s.io"), lost, delegator, CheckStatus.WARNING
    )
    lost = "callers with bearer tokens, such as a Prometheus that scrapes /metrics over TLS"
    yield _need_of_adapter(
        AccessRight("create", "tokenreviews", "authentication.k8s.io"), lost, delegator, CheckStatus.WARNING
    )
    reader = "the Role extension-apiserver-authentication-reader, by a RoleBinding in kube-system"
    for verb in ("list", "watch"):
        right = AccessRight(verb, "configmaps", "", "kube-system", "extension-apiserver-authentication")
        yield _need_of_adapter(
            right, "authentication of kube-apiserver's front proxy: all its requests are refused", reader
        )
    if secret is not None:
        yield from _needs_of_certificate(secret, apiservices)


def needs_of_rule_objects() -> Iterator[Need]:
    """Yield the rights that `--metric-rules` needs."""
    for verb in ("list", "watch"):
        right = AccessRight(verb, PLURAL, GROUP)
        yield _need_of_adapter(right, METRIC_RULES.lost, f"a ClusterRole with list and watch on {PLURAL}")
    right = AccessRight("patch", PLURAL, GROUP, subresource="status")
    lost = "the statuses of MetricRules: their owners cannot see what became of them"
    yield _need_of_adapter(right, lost, f"a ClusterRole with patch on {PLURAL}/status")


def _needs_of_certificate(secret: ObjectName, apiservices: Sequence[str]) -> Iterator[Need]:
    for verb in ("get", "patch"):
        right = AccessRight(verb, "secrets", "", secret.namespace, secret.name)
        yield _need_of_adapter(
            right, "the serving certificate: the program does not start", "a Role with get and patch on it"
        )
    for name in apiservices:
        for verb in ("get", "patch"):
            right = AccessRight(verb, "apiservices", "apiregistration.k8s.io", "", name)
            lost = "its caBundle: kube-apiserver refuses the serving certificate"
            yield _need_of_adapter(right, lost, "a ClusterRole with get and patch on it, by resourceNames")


def _need_of_adapter(right: AccessRight, lost: str, grant: str, status: CheckStatus = CheckStatus.ERROR) -> Need:
    return Need(f"permission/{right}", right, lost, f"grant {grant}", status)


def needs_of_hpa_controller() -> Iterator[Need]:
    """Yield the rights that the HPA controller needs to read metrics; `any-metric` stands for any metric's name."""
    rights = (
        (AccessRight("get", "pods", "custom.metrics.k8s.io", "default", "*", "any-metric"), "Pods and Object metrics"),
        (AccessRight("list", "any-metric", "external.metrics.k8s.io", "default"), "External metrics"),
        (AccessRight("list", "pods", "metrics.k8s.io", "default"), "CPU and memory"),
    )
    fix = (
        "bind ClusterRole system:controller:horizontal-pod-autoscaler to it again, or grant get and list on all of {}; "
        "a controller that runs without --use-service-account-credentials needs the same for its own user"
    )
    for right, what in rights:
        yield Need(f"hpa-controller/{right.group}", right, f"HPAs on {what}", fix.format(right.group))


def look_at_right(client: ObjectClient, need: Need, subject: Subject) -> tuple[Line]:
    """Request a review of one right, and return the line about it."""
    try:
        allowed = is_allowed(client, need.right, subject)
    except KubernetesError as e:
        return (unreviewed_line(need.name, need.right, subject, e),)
    return (judge_right(need, subject, allowed=allowed),)


def judge_right(need: Need, subject: Subject, *, allowed: bool) -> Line:
    """Return the line about a right."""
    if allowed:
        return ok(need.name, f"{subject} may {need.right}")
    return Line(need.name, need.status, f"{subject} may not {need.right}; affected: {need.lost}", need.fix)


LINE = "front-proxy"


def look_at_front_proxy(client: ObjectClient, now: datetime) -> tuple[Line]:
    """Read the ConfigMap that names the front proxy's CA, and judge it."""
    try:
        document = client.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}").document
    except KubernetesError as e:
        role = "the Role extension-apiserver-authentication-reader by a RoleBinding in kube-system"
        return (unread(LINE, e, role),)
    return (judge_front_proxy(document, now),)


def judge_front_proxy(document: Mapping[str, Any], now: datetime) -> Line:
    """Return the line about the content of the front proxy's ConfigMap."""
    data = document.get("data") or {}
    flags = "give kube-apiserver --requestheader-client-ca-file and the flags beside it"
    try:
        material = front_proxy_of(data)
        client_ca = str(data.get(CLIENT_CA) or "")
        clients = parse_bundle(client_ca.encode(), CLIENT_CA).keys if client_ca else frozenset()
    except IdentitySettingsError as e:
        return error(LINE, f"no front proxy is known: {e}", flags)
    front, ended = material.authorities.parsed, _expired_count(material.authorities.parsed, now)
    if ended == len(front):
        return error(LINE, f"every request-header CA in {WHERE} has expired", "renew the front-proxy CA")
    if not material.allowed_names and material.authorities.keys & clients:
        fix = "give kube-apiserver a CA of its own for --requestheader-client-ca-file, or --requestheader-allowed-names"
        message = "the request-header CA is also the client CA, and any name is allowed: the holder of any client "
        return warning(LINE, f"{message}certificate can act as any user", fix)
    if ended:
        return warning(LINE, "some of the request-header CAs have expired", "remove them from the front-proxy bundle")
    names = ", ".join(material.allowed_names) or "any name of that CA"
    return ok(LINE, f"{WHERE} is readable: {len(front)} request-header CA, for {names}")


def _expired_count(certificates: Iterable[x509.Certificate], now: datetime) -> int:
    return sum(one.not_valid_after_utc <= now for one in certificates)
