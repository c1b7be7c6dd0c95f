"""The VerticalPodAutoscalers of the kubeconfig's cluster, and which of the sized workloads they also size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.watch.whole_objects.watching import AnyObjectForm, whole_object
from adapter.foundation.objects.resources import Resource
from adapter.foundation.options.clients import kubernetes_client
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.kubernetes.errors import (
    ConfigurationError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
)
from adapter.foundation.sources.kubernetes.lists.list_watch import WHOLE_OBJECTS, ListWatch
from adapter.foundation.sources.kubernetes.lists.whole_list import whole_list
from recommender.decisions.targets.vertical_autoscalers import GROUP, KIND, PLURAL, active_autoscalers, note_about
from recommender.kinds.resources.size_record import SizeRecord, SizeStatus

if TYPE_CHECKING:
    from adapter.foundation.options.cluster import ClusterSettings
    from recommender.commands.sizes.size_reading import Sizes
    from recommender.decisions.inputs import ActiveAutoscalers

_RESOURCE: Final = Resource(GROUP, "v1", PLURAL, KIND.lower(), KIND, namespaced=True)


@dataclass(frozen=True, slots=True)
class SeenAutoscalers:
    """The VerticalPodAutoscalers of a cluster."""

    known: ActiveAutoscalers
    problem: str = ""
    """Why nothing is known about the VerticalPodAutoscalers; empty if they are known."""


def seen_autoscalers(cluster: ClusterSettings, namespace: str) -> SeenAutoscalers:
    """Return the VerticalPodAutoscalers of a namespace, or of all namespaces if it is empty.

    A cluster without the kind has none. Raises UsageError if the cluster cannot be read.
    """
    try:
        return SeenAutoscalers(_listed(cluster, namespace))
    except NotFoundError:
        return SeenAutoscalers({})
    except ForbiddenError as error:
        lost = "VerticalPodAutoscalers may not be listed, so it is not known which of them also size a workload"
        return SeenAutoscalers({}, f"{lost}: {error}")
    except ConfigurationError as error:
        # The error names the file and the repair.
        raise UsageError(str(error)) from error
    except KubernetesError as error:
        fix = "check the address and the credentials, or leave --kubeconfig and --context out"
        raise UsageError(f"--kubeconfig: VerticalPodAutoscalers cannot be listed: {error}: {fix}") from error


def with_autoscalers(sizes: Sizes, seen: SeenAutoscalers) -> Sizes:
    """Return the sizes with a note for workloads that a VerticalPodAutoscaler also sizes."""
    missing = (*sizes.missing, seen.problem) if seen.problem else sizes.missing
    return replace(sizes, records=tuple(_noted(record, seen.known) for record in sizes.records), missing=missing)


def _listed(cluster: ClusterSettings, namespace: str) -> ActiveAutoscalers:
    """Return the VerticalPodAutoscalers that write requests. Raises KubernetesError."""
    which = ListWatch(_RESOURCE, WHOLE_OBJECTS, namespace or None)
    forms = whole_list(kubernetes_client(cluster), which, AnyObjectForm)
    return active_autoscalers(whole_object(_RESOURCE, form) for form in forms)


def _noted(record: SizeRecord, known: ActiveAutoscalers) -> SizeRecord:
    workload = record.workload
    # kube-state-metrics does not state the API group of a workload.
    those = known.get((workload.namespace, workload.kind, workload.name), ())
    if record.status is SizeStatus.ERROR or not those:
        return record
    return replace(record, message="; ".join(filter(None, (record.message, note_about(those[0])))))
