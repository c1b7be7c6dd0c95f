"""Lines about requests to a cluster that failed, with the same wording in every program."""

from __future__ import annotations

from typing import Literal, TypeAlias

from adapter.foundation.reports.lines import SEE_APISERVER, Line, error, unknown

ApiServerFault: TypeAlias = Literal["credentials", "unreachable", "other"]
_FIXES: dict[ApiServerFault, str] = {
    "credentials": "set credentials that it accepts: --kubeconfig, or a service account's token",
    "unreachable": "check the address and the CA in the kubeconfig, and whether this machine reaches it",
    "other": "check which server answers at that address",
}


def unanswered(reason: str, fault: ApiServerFault) -> Line:
    """Return the line about a kube-apiserver that does not answer."""
    return error("kube-apiserver", f"it does not answer: {reason}", _FIXES[fault])


def unreached(reason: str) -> str:
    """Return the message of a command that ends because it cannot reach kube-apiserver."""
    return f"kube-apiserver: {reason}: {_FIXES['unreachable']}"


def unread(line: str, reason: str, right: str, *, is_forbidden: bool) -> Line:
    """Return the line about an object that could not be read; `right` is the right to read it."""
    if is_forbidden:
        return unknown(line, f"reading it is forbidden: {reason}", f"grant {right}, or run this as a user who has it")
    return unknown(line, f"it could not be read: {reason}", SEE_APISERVER)


def unreviewed(line: str, right: str, subject: str, reason: str, *, is_forbidden: bool) -> Line:
    """Return the line about a right for which no access review could be made."""
    fix = SEE_APISERVER
    if is_forbidden:
        fix = "grant create on subjectaccessreviews.authorization.k8s.io, or run this as a user who has it"
    return unknown(line, f"whether {subject} may {right} could not be checked: {reason}", fix)
