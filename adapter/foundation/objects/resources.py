"""Kinds of Kubernetes objects, as API discovery describes them, and how a kind is found by name.

The built-in kinds are known without a cluster, so that objects can come from files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """One kind of object: names, scope, and the API version that serves it."""

    group: str
    """API group; empty for the core group."""
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    scope_is_known: bool = True
    """Whether a cluster or Kubernetes itself says that the kind is namespaced, or not; otherwise it is a guess."""

    @property
    def qualified(self) -> str:
        """Plural name, followed by the group if it is not the core group, as in metric paths: `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """API version as in objects: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version


class UnknownResourceError(LookupError):
    """No resource of this name is known. The message contains the name and says where it was looked up."""


ResolveResource: TypeAlias = "Callable[[str, str], Resource]"
"""Returns the resource for a group and a name, singular or plural, in any case. Raises UnknownResourceError.

With an empty group, the core group is searched first, then all groups, as Kubernetes' RESTMapper does.
"""


def find_resource(resources: Iterable[Resource], group: str, name: str) -> Resource:
    """Return the resource of this name, singular or plural, in any case, as Kubernetes' RESTMapper finds it.

    The group may be a prefix (`networking` finds `networking.k8s.io`) if no group has exactly that name. Without a
    group, the core group is searched first, then the others in their order. The order also decides between versions.
    Raises UnknownResourceError.
    """
    known = tuple(resources)
    wanted = name.lower()
    named = [resource for resource in known if wanted in {resource.plural, resource.singular}]
    exact = [resource for resource in named if resource.group == group]
    found = exact or [resource for resource in named if resource.group.startswith(group)]
    if found:
        return found[0]
    raise UnknownResourceError(_not_found(known, group, name, named))


def _not_found(known: tuple[Resource, ...], group: str, name: str, named: list[Resource]) -> str:
    place = f"API group {group!r}" if group else "any API group"
    if named:
        hint = f"it is in {', '.join(sorted({repr(resource.group) for resource in named}))}"
    elif close := get_close_matches(name.lower(), {resource.plural for resource in known}, n=1):
        hint = f"did you mean {close[0]!r}?"
    else:
        hint = f"{len(known)} are known: see `kubectl api-resources`"
    return f"no resource {name!r} in {place}: {hint}"


_CLUSTER: Final = False
_NAMESPACED: Final = True


def _group(api_version: str, *kinds: tuple[str, str, bool]) -> tuple[Resource, ...]:
    """Return the resources of one API version; each of `kinds` is a plural name, a kind and a scope."""
    group, _, version = api_version.rpartition("/")
    return tuple(
        Resource(group=group, version=version, plural=plural, singular=kind.lower(), kind=kind, namespaced=namespaced)
        for plural, kind, namespaced in kinds
    )


BUILT_IN: Final[tuple[Resource, ...]] = (
    *_group(
        "v1",
        ("configmaps", "ConfigMap", _NAMESPACED),
        ("endpoints", "Endpoints", _NAMESPACED),
        ("events", "Event", _NAMESPACED),
        ("limitranges", "LimitRange", _NAMESPACED),
        ("namespaces", "Namespace", _CLUSTER),
        ("nodes", "Node", _CLUSTER),
        ("persistentvolumeclaims", "PersistentVolumeClaim", _NAMESPACED),
        ("persistentvolumes", "PersistentVolume", _CLUSTER),
        ("pods", "Pod", _NAMESPACED),
        ("podtemplates", "PodTemplate", _NAMESPACED),
        ("replicationcontrollers", "ReplicationController", _NAMESPACED),
        ("resourcequotas", "ResourceQuota", _NAMESPACED),
        ("secrets", "Secret", _NAMESPACED),
        ("serviceaccounts", "ServiceAccount", _NAMESPACED),
        ("services", "Service", _NAMESPACED),
    ),
    *_group(
        "apps/v1",
        ("controllerrevisions", "ControllerRevision", _NAMESPACED),
        ("daemonsets", "DaemonSet", _NAMESPACED),
        ("deployments", "Deployment", _NAMESPACED),
        ("replicasets", "ReplicaSet", _NAMESPACED),
        ("statefulsets", "StatefulSet", _NAMESPACED),
    ),
    *_group("batch/v1", ("cronjobs", "CronJob", _NAMESPACED), ("jobs", "Job", _NAMESPACED)),
    *_group("autoscaling/v2", ("horizontalpodautoscalers", "HorizontalPodAutoscaler", _NAMESPACED)),
    *_group(
        "networking.k8s.io/v1",
        ("ingressclasses", "IngressClass", _CLUSTER),
        ("ingresses", "Ingress", _NAMESPACED),
        ("ipaddresses", "IPAddress", _CLUSTER),
        ("networkpolicies", "NetworkPolicy", _NAMESPACED),
        ("servicecidrs", "ServiceCIDR", _CLUSTER),
    ),
    *_group("policy/v1", ("poddisruptionbudgets", "PodDisruptionBudget", _NAMESPACED)),
    *_group(
        "rbac.authorization.k8s.io/v1",
        ("clusterrolebindings", "ClusterRoleBinding", _CLUSTER),
        ("clusterroles", "ClusterRole", _CLUSTER),
        ("rolebindings", "RoleBinding", _NAMESPACED),
        ("roles", "Role", _NAMESPACED),
    ),
    *_group(
        "storage.k8s.io/v1",
        ("csidrivers", "CSIDriver", _CLUSTER),
        ("csinodes", "CSINode", _CLUSTER),
        ("csistoragecapacities", "CSIStorageCapacity", _NAMESPACED),
        ("storageclasses", "StorageClass", _CLUSTER),
        ("volumeattachments", "VolumeAttachment", _CLUSTER),
        ("volumeattributesclasses", "VolumeAttributesClass", _CLUSTER),
    ),
    *_group("coordination.k8s.io/v1", ("leases", "Lease", _NAMESPACED)),
    *_group("discovery.k8s.io/v1", ("endpointslices", "EndpointSlice", _NAMESPACED)),
    *_group("events.k8s.io/v1", ("events", "Event", _NAMESPACED)),
    *_group("scheduling.k8s.io/v1", ("priorityclasses", "PriorityClass", _CLUSTER)),
    *_group("node.k8s.io/v1", ("runtimeclasses", "RuntimeClass", _CLUSTER)),
    *_group(
        "resource.k8s.io/v1",
        ("deviceclasses", "DeviceClass", _CLUSTER),
        ("resourceclaims", "ResourceClaim", _NAMESPACED),
        ("resourceclaimtemplates", "ResourceClaimTemplate", _NAMESPACED),
        ("resourceslices", "ResourceSlice", _CLUSTER),
    ),
    *_group(
        "admissionregistration.k8s.io/v1",
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", _CLUSTER),
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", _CLUSTER),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", _CLUSTER),
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", _CLUSTER),
    ),
    *_group("apiextensions.k8s.io/v1", ("customresourcedefinitions", "CustomResourceDefinition", _CLUSTER)),
    *_group("apiregistration.k8s.io/v1", ("apiservices", "APIService", _CLUSTER)),
    *_group("certificates.k8s.io/v1", ("certificatesigningrequests", "CertificateSigningRequest", _CLUSTER)),
    *_group(
        "flowcontrol.apiserver.k8s.io/v1",
        ("flowschemas", "FlowSchema", _CLUSTER),
        ("prioritylevelconfigurations", "PriorityLevelConfiguration", _CLUSTER),
    ),
)
"""The stable kinds of Kubernetes itself, each in its preferred version, in the order in which a server lists groups."""
