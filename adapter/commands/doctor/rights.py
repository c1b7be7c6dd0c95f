"""Doctor: which rights the adapter has, what fails without each, and what the HPA controller may read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.identity.certificates.certificate_secret import ObjectName
from adapter.reports.lines import CheckStatus, Line, ok, unknown
from adapter.sources.kubernetes.errors import ForbiddenError, KubernetesError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapter.sources.kubernetes.writing import ObjectClient

REVIEWS = "/apis/authorization.k8s.io/v1"
HPA_CONTROLLER = ObjectName("kube-system", "horizontal-pod-autoscaler")


@dataclass(frozen=True, slots=True)
class AccessRight:
    """One right, as an access review names it."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    object_name: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        """Return the right in the words of a role."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        if self.subresource:
            resource = f"{resource}/{self.subresource}"
        named = f" {self.object_name}" if self.object_name and self.object_name != "*" else ""
        return f"{self.verb} {resource}{named}" + (f" in {self.namespace}" if self.namespace else "")

    @property
    def attributes(self) -> dict[str, str]:
        """Return the `resourceAttributes` of an access review."""
        found = {
            "verb": self.verb,
            "group": self.group,
            "resource": self.resource,
            "subresource": self.subresource,
            "namespace": self.namespace,
            "name": self.object_name,
        }
        return {key: value for key, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class Need:
    """A right that somebody should have."""

    name: str
    """Name of the line."""
    right: AccessRight
    lost: str
    """What fails without the right."""
    fix: str
    status: CheckStatus = CheckStatus.ERROR
    """Status of the line if the right is missing."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose rights are checked: those of a service account, or the caller's own."""

    service_account: ObjectName | None = None

    def __str__(self) -> str:
        """Return who it is."""
        return f"the service account {self.service_account}" if self.service_account else "this caller"


def needs_of_adapter(secret: ObjectName | None, apiservices: Sequence[str]) -> Iterator[Need]:
    """Yield the rights that the adapter needs; `secret` holds its serving certificate, if it keeps one."""
    for verb in ("list", "watch"):
        lost = "metrics of pods that a selector picks: HPAs on Pods metrics get 503"
        yield _own(AccessRight(verb, "pods"), lost, "a ClusterRole with get, list and watch on pods")
    for verb in ("list", "watch"):
        for plural in ("nodes", "namespaces"):
            lost = f"metrics of {plural} that a selector picks"
            yield _own(
                AccessRight(verb, plural),
                lost,
                f"a ClusterRole with get, list and watch on {plural}",
                CheckStatus.WARNING,
            )
    delegator = "the ClusterRole system:auth-delegator, by a ClusterRoleBinding"
    lost = "authorization of direct callers, and of requests that kube-apiserver passes on"
    yield _own(
        AccessRight("create", "subjectaccessreviews", "authorization.k8s.io"), lost, delegator, CheckStatus.WARNING
    )
    lost = "callers with bearer tokens, such as a Prometheus that scrapes /metrics over TLS"
    yield _own(AccessRight("create", "tokenreviews", "authentication.k8s.io"), lost, delegator, CheckStatus.WARNING)
    reader = "the Role extension-apiserver-authentication-reader, by a RoleBinding in kube-system"
    for verb in ("list", "watch"):
        right = AccessRight(verb, "configmaps", "", "kube-system", "extension-apiserver-authentication")
        yield _own(right, "authentication of kube-apiserver's front proxy: all its requests are refused", reader)
    if secret is not None:
        yield from _needs_of_certificate(secret, apiservices)


def _needs_of_certificate(secret: ObjectName, apiservices: Sequence[str]) -> Iterator[Need]:
    for verb in ("get", "patch"):
        right = AccessRight(verb, "secrets", "", secret.namespace, secret.name)
        yield _own(right, "the serving certificate: the program does not start", "a Role with get and patch on it")
    for name in apiservices:
        for verb in ("get", "patch"):
            right = AccessRight(verb, "apiservices", "apiregistration.k8s.io", "", name)
            lost = "its caBundle: kube-apiserver refuses the serving certificate"
            yield _own(right, lost, "a ClusterRole with get and patch on it, by resourceNames")


def _own(right: AccessRight, lost: str, grant: str, status: CheckStatus = CheckStatus.ERROR) -> Need:
    return Need(f"permission/{right}", right, lost, f"grant {grant}", status)


def needs_of_hpa_controller() -> Iterator[Need]:
    """Yield the rights that the HPA controller needs to read metrics; each metric's name stands for any metric."""
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
        return (unasked(need.name, need.right, subject, e),)
    return (judge_right(need, subject, allowed=allowed),)


def judge_right(need: Need, subject: Subject, *, allowed: bool) -> Line:
    """Return the line about a right."""
    if allowed:
        return ok(need.name, f"{subject} may {need.right}")
    return Line(need.name, need.status, f"{subject} may not {need.right}; lost without it: {need.lost}", need.fix)


def is_allowed(client: ObjectClient, right: AccessRight, subject: Subject) -> bool:
    """Return whether an access review allows it. Raises KubernetesError."""
    account = subject.service_account
    kind = "SubjectAccessReview" if account else "SelfSubjectAccessReview"
    spec: dict[str, object] = {"resourceAttributes": right.attributes}
    if account is not None:
        spec["user"] = f"system:serviceaccount:{account.namespace}:{account.name}"
        spec["groups"] = _groups(account)
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    answer = client.create(f"{REVIEWS}/{kind.lower()}s", review)
    status = answer.get("status")
    return isinstance(status, dict) and status.get("allowed") is True


def _groups(account: ObjectName) -> list[str]:
    return ["system:serviceaccounts", f"system:serviceaccounts:{account.namespace}", "system:authenticated"]


def unasked(name: str, right: AccessRight, subject: Subject, failure: KubernetesError) -> Line:
    """Return the line about a right that could not be reviewed."""
    fix = "check whether kube-apiserver answers at all"
    if isinstance(failure, ForbiddenError):
        fix = "grant create on subjectaccessreviews.authorization.k8s.io, or run this as a user who has it"
    return unknown(name, f"whether {subject} may {right} could not be checked: {failure}", fix)
