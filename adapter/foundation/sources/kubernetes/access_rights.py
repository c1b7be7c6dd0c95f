"""Checks permissions with access reviews of the API server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.foundation.objects.names import ObjectName
    from adapter.foundation.sources.kubernetes.writing import ObjectClient

REVIEWS = "/apis/authorization.k8s.io/v1"


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
        """Return the right as a Role would state it."""
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
class Subject:
    """The service account whose rights are checked; None for the caller's own rights."""

    service_account: ObjectName | None = None

    def __str__(self) -> str:
        """Return the name of the subject."""
        return f"the service account {self.service_account}" if self.service_account else "this caller"


def is_allowed(client: ObjectClient, right: AccessRight, subject: Subject) -> bool:
    """Return whether an access review says that the subject has the right. Raises KubernetesError."""
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
