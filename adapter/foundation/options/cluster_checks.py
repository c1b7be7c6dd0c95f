"""`doctor` checks whether kube-apiserver answers, and its clock; failed requests are worded alike in every program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.clocks import clock_line, time_of
from adapter.foundation.reports.lines import SEE_APISERVER, Line, error, ok, unknown
from adapter.foundation.sources.kubernetes.errors import (
    ConfigurationError,
    ForbiddenError,
    KubernetesError,
    UnauthorizedError,
    UnreachableError,
)
from adapter.foundation.sources.prometheus.queries.date_header import MOST_CLOCK_DIFFERENCE_SECONDS

if TYPE_CHECKING:
    from adapter.foundation.sources.kubernetes.writing import ObjectClient

_NOT_REACHED: Final = "check the address and the CA in the kubeconfig, and whether this machine reaches it"


def look_at_apiserver(client: ObjectClient) -> tuple[Line, ...]:
    """Ask kube-apiserver for its version and its time."""
    versions: list[str] = []

    def shown() -> float | None:
        reply = client.get("/version")
        versions.append(str(reply.document.get("gitVersion", "unknown")))
        return time_of(reply.date)

    try:
        clock = clock_line("kube-apiserver", shown, MOST_CLOCK_DIFFERENCE_SECONDS)
    except KubernetesError as e:
        return (error("kube-apiserver", f"it does not answer: {e}", _fix_of(e)),)
    return ok("kube-apiserver", f"it answers, version {versions[0]}"), clock


def _fix_of(failure: KubernetesError) -> str:
    """Return what to do if kube-apiserver does not answer."""
    if isinstance(failure, ConfigurationError | UnauthorizedError):
        return "set credentials that it accepts: --kubeconfig, or a service account's token"
    return _NOT_REACHED if isinstance(failure, UnreachableError) else "check which server answers at that address"


def unreachable_message(reason: str) -> str:
    """Return the message of a command that ends because it cannot reach kube-apiserver."""
    return f"kube-apiserver: {reason}: {_NOT_REACHED}"


def unread(line: str, failure: KubernetesError, right: str) -> Line:
    """Return the line about an object that could not be read; `right` is the right to read it."""
    if isinstance(failure, ForbiddenError):
        return unknown(line, f"reading it is forbidden: {failure}", f"grant {right}, or run this as a user who has it")
    return unknown(line, f"it could not be read: {failure}", SEE_APISERVER)


def unreviewed_line(line: str, right: object, subject: object, failure: KubernetesError) -> Line:
    """Return the line about a right for which no access review could be made."""
    fix = SEE_APISERVER
    if isinstance(failure, ForbiddenError):
        fix = "grant create on subjectaccessreviews.authorization.k8s.io, or run this as a user who has it"
    return unknown(line, f"whether {subject} may {right} could not be checked: {failure}", fix)
