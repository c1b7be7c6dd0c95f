"""`doctor` checks whether the cluster has the CustomResourceDefinition of a kind that this program defines.

Everybody may ask whether a kind is served, but only callers that may read the definition learn which keys it lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapter.foundation.reports.definitions import DefinedKind, judge_definition, not_installed
from adapter.foundation.reports.lines import SEE_APISERVER, Line, unknown
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, KubernetesError, NotFoundError

if TYPE_CHECKING:
    from adapter.foundation.sources.kubernetes.writing import ObjectClient

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def look_at_definition(client: ObjectClient, kind: DefinedKind) -> tuple[Line]:
    """Look up which resources are served, read the definition if that is allowed, and return the line about it."""
    try:
        served = client.get(f"/apis/{kind.group}/{kind.version}").document
        return (judge_definition(kind, served, _definition(client, kind)),)
    except NotFoundError:
        return (not_installed(kind),)
    except KubernetesError as failure:
        return (unknown(kind.line, f"it could not be looked up: {failure}", SEE_APISERVER),)


def _definition(client: ObjectClient, kind: DefinedKind) -> dict[str, Any] | None:
    """Return the definition; None if it is missing or this caller may not read it. Raises KubernetesError."""
    try:
        return client.get(f"{_DEFINITIONS}/{kind.name}").document
    except (ForbiddenError, NotFoundError):
        return None
